package link

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller is an epoll instance that a goroutine can park on, since it sits in the runtime's own poller. Events are
// edge-triggered: one that nobody asked for wakes a park once and changes a hint.
type poller struct {
	ep     int
	wakeFD int
	file   *os.File
	raw    syscall.RawConn
	ready  func(fd uintptr) bool
	events [64]unix.EpollEvent
	conns  []*Conn
}

const wakeIndex = -1

func newPoller() (*poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(ep)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &poller{ep: ep, wakeFD: wake}
	p.ready = func(uintptr) bool { return p.collect() > 0 }
	err = p.register(wake, wakeIndex, unix.EPOLLIN)
	if err == nil {
		err = unix.SetNonblock(ep, true)
	}
	if err != nil {
		_ = unix.Close(ep)
		_ = unix.Close(wake)
		return nil, err
	}
	p.file = os.NewFile(uintptr(ep), "hipfabric-epoll")
	if p.raw, err = p.file.SyscallConn(); err == nil {
		err = p.file.SetReadDeadline(time.Time{}) // an error here means that the runtime does not poll it
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("epoll instance in the runtime's poller: %w", err)
	}
	return p, nil
}

func (p *poller) register(fd, index int, events uint32) error {
	e := unix.EpollEvent{Events: events | unix.EPOLLET, Fd: int32(index)}
	if err := unix.EpollCtl(p.ep, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (p *poller) add(c *Conn) error {
	if err := p.register(c.fd, len(p.conns), unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP); err != nil {
		return err
	}
	p.conns = append(p.conns, c)
	return nil
}

// collect takes the events that have come, without blocking, and sets hints.
func (p *poller) collect() int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	for i := range p.events[:n] {
		e := &p.events[i]
		if e.Fd == wakeIndex {
			p.drain()
			continue
		}
		c := p.conns[e.Fd]
		c.Readable = c.Readable || e.Events&^unix.EPOLLOUT != 0
		c.Writable = c.Writable || e.Events&^unix.EPOLLIN != 0
	}
	return int(n)
}

func (p *poller) drain() {
	var b [8]byte
	_, _ = unix.Read(p.wakeFD, b[:])
}

// park blocks until an event has come or the deadline has passed; a zero deadline is none.
func (p *poller) park(deadline time.Time) error {
	if err := p.file.SetReadDeadline(deadline); err != nil {
		return err
	}
	err := p.raw.Read(p.ready)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return os.ErrDeadlineExceeded
	}
	return err
}

func (p *poller) wake() {
	_, _ = unix.Write(p.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (p *poller) close() {
	_ = p.file.Close()
	_ = unix.Close(p.wakeFD)
}
