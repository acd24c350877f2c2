//go:build unix

package verbstest

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bell is a descriptor that is readable while it rings.
type bell struct{ r, w int }

func newBell() (bell, syscall.Errno) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return bell{}, syscall.EMFILE
	}
	for _, fd := range p {
		unix.CloseOnExec(fd)
		_ = unix.SetNonblock(fd, true) // fails on no pipe
	}
	return bell{p[0], p[1]}, 0
}

func (b bell) fd() int { return b.r }

// ring and silence alternate, so that the pipe never holds more than a byte.
func (b bell) ring() { _, _ = unix.Write(b.w, []byte{1}) }

func (b bell) silence() { _, _ = unix.Read(b.r, make([]byte, 1)) }

func (b bell) close() {
	_ = unix.Close(b.w)
	_ = unix.Close(b.r)
}
