package sock

import (
	"time"

	"golang.org/x/sys/unix"
)

func options(Use) []option {
	return []option{
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1, true},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1, true},
		{"TCP_KEEPALIVE", unix.IPPROTO_TCP, unix.TCP_KEEPALIVE, int(KeepIdle / time.Second), false},
	}
}
