//go:build linux || darwin

package sock

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Limit bounds what c's socket holds.
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
			if err := unix.SetsockoptInt(int(fd), o.level, o.opt, o.val); err != nil && setErr == nil {
				setErr = fmt.Errorf("setsockopt %s to %d: %w", o.name, o.val, err)
			}
		}
	}); err != nil {
		return fmt.Errorf("socket to %v: %w", c.RemoteAddr(), err)
	}
	return setErr
}
