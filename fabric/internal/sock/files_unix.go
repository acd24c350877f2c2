//go:build unix

package sock

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// OpenFiles reads how many files this process has open and how many it may have.
func OpenFiles() (used, limit uint64) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, math.MaxUint64
	}
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0, uint64(r.Cur)
	}
	return uint64(len(entries)), uint64(r.Cur)
}
