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

// poller is an epoll instance that a goroutine can park on, since it sits in the runtime's own poller. A connection comes
// into it by a park and is armed for one event at a time: one armed while its owner spins would wake a thread of the runtime
// with every arrival.
type poller struct {
	ep     int
	wakeFD int
	file   *os.File
	raw    syscall.RawConn
	ready  func(fd uintptr) bool
	events [64]unix.EpollEvent

	unparked int // waits since the last park
	connections
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
	err = p.control(unix.EPOLL_CTL_ADD, wake, wakeIndex, unix.EPOLLIN|unix.EPOLLET)
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

func (p *poller) control(op, fd, index int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(index)}
	if err := unix.EpollCtl(p.ep, op, fd, &e); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (p *poller) add(c *Conn) error {
	p.place(c)
	return nil
}

// arm asks for one event of each connection that something waits for; what is there already counts.
func (p *poller) arm() error {
	for i, c := range p.conns {
		if c == nil {
			continue
		}
		want := uint32(c.interest())
		if want == 0 || want == c.armed {
			continue
		}
		op := unix.EPOLL_CTL_MOD
		if !c.known {
			op = unix.EPOLL_CTL_ADD
		}
		if err := p.control(op, c.fd, i, want|unix.EPOLLONESHOT); err != nil {
			return err
		}
		c.armed, c.known = want, true
	}
	p.unparked = 0
	return nil
}

// spun is told of each wait that ended without a park. After many the connections leave the epoll instance, whose look
// at every arrival costs the sender's time.
func (p *poller) spun() {
	if p.unparked++; p.unparked != forgetAfter {
		return
	}
	for _, c := range p.conns {
		if c != nil && c.known {
			_ = p.control(unix.EPOLL_CTL_DEL, c.fd, 0, 0)
			c.known, c.armed = false, 0
		}
	}
}

// forgetAfter is how many waits in a row end without a park before the next one pays for coming back.
const forgetAfter = 256

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
		if c := p.conns[e.Fd]; c != nil {
			c.armed = 0
			c.hint(int16(e.Events))
		}
	}
	return int(n)
}

func (p *poller) drain() {
	var b [8]byte
	_, _ = unix.Read(p.wakeFD, b[:])
}

// park blocks until an event has come or the deadline has passed; a zero deadline is none.
func (p *poller) park(deadline time.Time) error {
	if err := p.arm(); err != nil {
		return err
	}
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
