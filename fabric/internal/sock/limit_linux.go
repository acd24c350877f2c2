package sock

import "golang.org/x/sys/unix"

// bufferFactor is by how much the kernel shows a buffer larger than it was asked for.
const bufferFactor = 2

func limits(o Options) []option {
	var all []option
	if o.Buffer > 0 {
		all = append(all, option{"SO_SNDBUF", unix.SOL_SOCKET, unix.SO_SNDBUF, o.Buffer, false}, option{"SO_RCVBUF", unix.SOL_SOCKET, unix.SO_RCVBUF, o.Buffer, false})
	}
	if o.Unsent > 0 {
		all = append(all, option{"TCP_NOTSENT_LOWAT", unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, o.Unsent, false})
	}
	return all
}
