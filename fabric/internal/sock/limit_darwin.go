package sock

import "golang.org/x/sys/unix"

const bufferFactor = 1

func limits(o Options) []option {
	var all []option
	if o.Buffer > 0 {
		all = append(all, option{"SO_SNDBUF", unix.SOL_SOCKET, unix.SO_SNDBUF, o.Buffer, false}, option{"SO_RCVBUF", unix.SOL_SOCKET, unix.SO_RCVBUF, o.Buffer, false})
	}
	return all
}
