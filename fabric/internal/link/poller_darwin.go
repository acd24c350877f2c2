package link

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits with poll(2): a park holds a thread while it lasts.
type poller struct {
	pipe [2]int
	connections
}

func newPoller() (*poller, error) {
	p := &poller{}
	syscall.ForkLock.RLock() // a child must not inherit the pipe
	err := unix.Pipe(p.pipe[:])
	if err == nil {
		unix.CloseOnExec(p.pipe[0])
		unix.CloseOnExec(p.pipe[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	for _, fd := range p.pipe {
		if err := unix.SetNonblock(fd, true); err != nil {
			p.close()
			return nil, fmt.Errorf("pipe: %w", err)
		}
	}
	return p, nil
}

func (p *poller) add(c *Conn) error {
	p.place(c)
	return nil
}

func (p *poller) park(deadline time.Time) error {
	p.fds = append(p.fds[:0], unix.PollFd{Fd: int32(p.pipe[0]), Events: unix.POLLIN})
	p.ask()
	timeout := -1
	if !deadline.IsZero() {
		timeout = max(int(time.Until(deadline)/time.Millisecond)+1, 0)
	}
	n, err := unix.Poll(p.fds, timeout)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return fmt.Errorf("poll: %w", err)
	case n == 0:
		return os.ErrDeadlineExceeded
	}
	if p.fds[0].Revents != 0 {
		var b [64]byte
		_, _ = unix.Read(p.pipe[0], b[:])
	}
	p.refresh()
	return nil
}

func (p *poller) spun() {}

func (p *poller) wake() { _, _ = unix.Write(p.pipe[1], []byte{1}) }

func (p *poller) close() {
	_ = unix.Close(p.pipe[0])
	_ = unix.Close(p.pipe[1])
}
