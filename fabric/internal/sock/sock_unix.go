//go:build linux || darwin

package sock

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

type option struct {
	name            string
	level, opt, val int
	flag            bool // the kernel may report any non-zero value
}

// Tune sets the options of c's socket and reads each back.
func Tune(c *net.TCPConn, use Use) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("socket to %v: %w", c.RemoteAddr(), err)
	}
	var tuneErr error
	if err := raw.Control(func(fd uintptr) { tuneErr = tune(int(fd), use) }); err != nil {
		return fmt.Errorf("socket to %v: %w", c.RemoteAddr(), err)
	}
	if tuneErr != nil {
		return fmt.Errorf("socket to %v: %w", c.RemoteAddr(), tuneErr)
	}
	return nil
}

func tune(fd int, use Use) error {
	for _, o := range options(use) {
		if err := unix.SetsockoptInt(fd, o.level, o.opt, o.val); err != nil {
			return fmt.Errorf("setsockopt %s to %d: %w", o.name, o.val, err)
		}
	}
	return Check(fd, use)
}

// Check reads every option of a tuned socket back and names the first that is not as Tune sets it.
func Check(fd int, use Use) error {
	for _, o := range options(use) {
		got, err := unix.GetsockoptInt(fd, o.level, o.opt)
		if err != nil {
			return fmt.Errorf("getsockopt %s: %w", o.name, err)
		}
		if got != o.val && (!o.flag || got == 0) {
			return fmt.Errorf("%s is %d after it was set to %d", o.name, got, o.val)
		}
	}
	return nil
}

// Take gives a non-blocking descriptor of c's socket that the caller owns, and closes c: the connection lives on
// outside the runtime's poller. The descriptor is negative when there is none.
func Take(c *net.TCPConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("socket to %v: %w", c.RemoteAddr(), err)
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(orig uintptr) {
		if fd, dupErr = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0); dupErr == nil {
			dupErr = unix.SetNonblock(fd, true)
		}
	}); err != nil {
		return -1, fmt.Errorf("socket to %v: %w", c.RemoteAddr(), err)
	}
	if dupErr != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		_ = c.Close()
		return -1, fmt.Errorf("dup of socket to %v: %w", c.RemoteAddr(), dupErr)
	}
	return fd, c.Close()
}
