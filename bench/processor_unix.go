//go:build unix

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what this process has used of all cores, for itself and in the kernel.
func processorTime() (time.Duration, error) {
	var u unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
