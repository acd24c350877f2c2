//go:build linux || darwin

package sock

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Limit bounds what c's socket holds. It gives a *ClampedError where the system allows less than was asked for.
func Limit(c *net.TCPConn, o Options) error {
	all := limits(o)
	if len(all) == 0 {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("socket to %v: %w", c.RemoteAddr(), err)
	}
	var setErr error
	if err := raw.Control(func(fd uintptr) {
		for _, o := range all {
			if setErr = set(int(fd), o); setErr != nil {
				return
			}
		}
	}); err != nil {
		return fmt.Errorf("socket to %v: %w", c.RemoteAddr(), err)
	}
	return setErr
}

func set(fd int, o option) error {
	if err := unix.SetsockoptInt(fd, o.level, o.opt, o.val); err != nil {
		return fmt.Errorf("setsockopt %s to %d: %w", o.name, o.val, err)
	}
	got, err := unix.GetsockoptInt(fd, o.level, o.opt)
	if err != nil {
		return fmt.Errorf("getsockopt %s: %w", o.name, err)
	}
	if o.opt == unix.SO_SNDBUF || o.opt == unix.SO_RCVBUF {
		got /= bufferFactor
	}
	if got < o.val {
		return &ClampedError{o.name, o.val, got}
	}
	return nil
}
