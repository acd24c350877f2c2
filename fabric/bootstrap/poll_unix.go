//go:build linux || darwin

package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func supported() error { return nil }

// pipePoller is poll(2) over the links' paths and a pipe that wakes it.
type pipePoller struct {
	r, w  int
	woken atomic.Bool // a byte is in the pipe
	fds   []unix.PollFd
}

func newPoller() (poller, error) {
	var p [2]int
	syscall.ForkLock.RLock()
	err := unix.Pipe(p[:])
	if err == nil {
		unix.CloseOnExec(p[0])
		unix.CloseOnExec(p[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	if err := errors.Join(unix.SetNonblock(p[0], true), unix.SetNonblock(p[1], true)); err != nil {
		_ = unix.Close(p[0])
		_ = unix.Close(p[1])
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return &pipePoller{r: p[0], w: p[1]}, nil
}

func (p *pipePoller) wait(links []*link, timeout time.Duration) {
	p.fds = append(p.fds[:0], unix.PollFd{Fd: int32(p.r), Events: unix.POLLIN})
	for _, l := range links {
		for _, way := range l.paths {
			way.ready = false
			events := int16(unix.POLLIN)
			if l.unsentBy(way) {
				events |= unix.POLLOUT
			}
			p.fds = append(p.fds, unix.PollFd{Fd: int32(way.fd), Events: events})
		}
	}
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.Poll(p.fds, ms)
	if err != nil || n == 0 {
		return // EINTR: the loop comes back with what is left of the time
	}
	if p.fds[0].Revents != 0 {
		p.drain()
	}
	i := 1
	for _, l := range links {
		for _, way := range l.paths {
			way.ready = p.fds[i].Revents&(unix.POLLIN|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
			i++
		}
	}
}

// drain empties the pipe before woken is cleared, so that a later wake always leaves a byte.
func (p *pipePoller) drain() {
	var b [8]byte
	_, _ = ignoringEINTR(func() (int, error) { return unix.Read(p.r, b[:]) })
	p.woken.Store(false)
}

func (p *pipePoller) wake() {
	if p.woken.CompareAndSwap(false, true) {
		_, _ = ignoringEINTR(func() (int, error) { return unix.Write(p.w, []byte{1}) })
	}
}

func (p *pipePoller) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// readFD reads what is there; 0 bytes and no error mean nothing is, io.EOF that the other end has closed.
func readFD(fd int, b []byte) (int, error) {
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, b) })
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// writeFD writes what fits; 0 bytes and no error mean nothing does.
func writeFD(fd int, b []byte) (int, error) {
	n, err := ignoringEINTR(func() (int, error) { return unix.Write(fd, b) })
	if errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	return max(n, 0), err
}

// gone says whether the other end of c has closed it, without taking a byte.
func gone(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, err := ignoringEINTR(func() (int, error) {
			n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			return n, err
		})
		closed = (n == 0 && err == nil) || (err != nil && !errors.Is(err, unix.EAGAIN))
	})
	return closed || err != nil
}

func shutdownFD(fd int) { _ = unix.Shutdown(fd, unix.SHUT_WR) }

func closeFD(fd int) { _ = unix.Close(fd) }
