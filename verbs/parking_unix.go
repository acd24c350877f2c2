//go:build unix

package verbs

import (
	"os"

	"golang.org/x/sys/unix"
)

func duplicate(fd int, name string) (*os.File, error) {
	same, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(same), name), nil
}
