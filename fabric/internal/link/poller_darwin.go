package link

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits with poll(2): a park holds a thread while it lasts.
type poller struct {
	pipe  [2]int
	fds   []unix.PollFd
	conns []*Conn
}

func newPoller() (*poller, error) {
	p := &poller{}
	if err := unix.Pipe(p.pipe[:]); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	for _, fd := range p.pipe {
		if err := unix.SetNonblock(fd, true); err != nil {
			p.close()
			return nil, fmt.Errorf("pipe: %w", err)
		}
		unix.CloseOnExec(fd)
	}
	p.fds = []unix.PollFd{{Fd: int32(p.pipe[0]), Events: unix.POLLIN}}
	return p, nil
}

func (p *poller) add(c *Conn) error {
	p.conns = append(p.conns, c)
	p.fds = append(p.fds, unix.PollFd{Fd: int32(c.fd)})
	return nil
}

// refresh has nothing cheaper than a try: every connection is worth one.
func (p *poller) refresh() bool {
	for _, c := range p.conns {
		c.Readable, c.Writable = true, true
	}
	return false
}

func (p *poller) park(deadline time.Time) error {
	for i, c := range p.conns {
		fd := &p.fds[i+1]
		fd.Fd, fd.Events = int32(c.fd), 0
		if c.Receiving() && !c.Readable {
			fd.Events |= unix.POLLIN
		}
		if c.Sending() && !c.Writable {
			fd.Events |= unix.POLLOUT
		}
		if fd.Events == 0 {
			fd.Fd = -1
		}
	}
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

func (p *poller) wake() { _, _ = unix.Write(p.pipe[1], []byte{1}) }

func (p *poller) close() {
	_ = unix.Close(p.pipe[0])
	_ = unix.Close(p.pipe[1])
}
