package verbs

import "golang.org/x/sys/unix"

// keepFromChildren: after a fork the parent's first write would move a page away from under the device.
func keepFromChildren(mem []byte) error { return unix.Madvise(mem, unix.MADV_DONTFORK) }

func memlockLimit() (limit uint64, known bool) {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) != nil || r.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	return r.Cur, true
}
