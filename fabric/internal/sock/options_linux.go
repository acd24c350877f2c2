package sock

import (
	"time"

	"golang.org/x/sys/unix"
)

func options(use Use) []option {
	o := []option{
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1, true},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1, true},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(KeepIdle / time.Second), false},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(KeepInterval / time.Second), false},
		{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, KeepCount, false},
	}
	timeout := 0
	if use == Control {
		timeout = int(UserTimeout / time.Millisecond)
	}
	return append(o, option{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, timeout, false})
}
