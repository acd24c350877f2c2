package rdma

import (
	"math"

	"golang.org/x/sys/unix"
)

func limits() (soft, hard int64, told bool) {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) != nil {
		return 0, 0, false
	}
	return limit(r.Cur), limit(r.Max), true
}

func limit(v uint64) int64 {
	if v > math.MaxInt64 {
		return NoLimit
	}
	return int64(v)
}

func may(path string) error { return unix.Access(path, unix.R_OK|unix.W_OK) }
