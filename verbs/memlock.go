package verbs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// MemlockError is memory that could not be registered because the process may not lock so much.
type MemlockError struct {
	Bytes  uint64 // needed
	Pinned uint64 // what the process has registered already
	Limit  uint64 // RLIMIT_MEMLOCK
	Err    error  // the call's
}

func (e *MemlockError) Error() string {
	return fmt.Sprintf("%v: %d bytes more need to be locked, %d are, and the process's limit is %d: raise it by `ulimit -l unlimited`, "+
		"memlock in /etc/security/limits.conf, LimitMEMLOCK=infinity of a systemd unit, or --ulimit memlock=-1 of a container", e.Err, e.Bytes, e.Pinned, e.Limit)
}

// Unwrap is the call's error.
func (e *MemlockError) Unwrap() error { return e.Err }

// memlocked says more of a registration that failed for the limit.
func memlocked(err *Error, bytes int) error {
	limit, known := memlockLimit()
	if err.Errno != syscall.ENOMEM || !known {
		return err
	}
	f, failed := os.Open("/proc/self/status")
	if failed != nil {
		return err
	}
	defer f.Close()
	return beyond(err, uint64(bytes), pinned(f), limit)
}

func beyond(err error, bytes, pinned, limit uint64) error {
	if bytes <= limit && pinned <= limit-bytes {
		return err
	}
	return &MemlockError{Bytes: bytes, Pinned: pinned, Limit: limit, Err: err}
}

// pinned reads VmPin from /proc/PID/status, in bytes.
func pinned(status io.Reader) uint64 {
	for lines := bufio.NewScanner(status); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "VmPin:")
		if !ok {
			continue
		}
		kB, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
		if err != nil {
			return 0
		}
		return kB << 10
	}
	return 0
}
