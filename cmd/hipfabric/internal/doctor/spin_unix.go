//go:build unix

package doctor

import (
	"errors"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// spinner reads by trying again and again, as a group's calls do before they park. The connection's deadline ends it.
func spinner(c *net.TCPConn) (func([]byte) (int, error), error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	return func(b []byte) (n int, err error) {
		for {
			// The callback's true keeps the runtime from parking: this loop is the wait.
			if e := raw.Read(func(fd uintptr) bool { n, err = unix.Read(int(fd), b); return true }); e != nil {
				return 0, e
			}
			switch {
			case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			case err != nil:
				return 0, err
			case n == 0:
				return 0, io.EOF
			default:
				return n, nil
			}
		}
	}, nil
}
