//go:build linux || darwin

package link

import (
	"slices"

	"golang.org/x/sys/unix"
)

// interest is the poll events that would let the frames under way go on. They have epoll's values too.
func (c *Conn) interest() int16 {
	events := int16(0)
	if c.Receiving() {
		events |= unix.POLLIN
	}
	if c.Sending() && !c.Writable {
		events |= unix.POLLOUT
	}
	return events
}

// hint marks what is worth a try; an error or an end is told by either.
func (c *Conn) hint(events int16) {
	c.Readable = c.Readable || events&^unix.POLLOUT != 0
	c.Writable = c.Writable || events&^unix.POLLIN != 0
}

func closeSocket(fd int) { _ = unix.Close(fd) }

// resetSocket closes a socket without sending what it still has.
func resetSocket(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	closeSocket(fd)
}

// closeQuietly closes a socket after it has read what lies there, up to a bound: bytes left unread would make the close a
// reset, which takes with it what the peer has not read.
func closeQuietly(fd int) {
	var scratch [4 << 10]byte
	for range 256 {
		if n, err := unix.Read(fd, scratch[:]); n <= 0 || err != nil {
			break
		}
	}
	closeSocket(fd)
}

// connections are a poller's, with holes where some were dropped.
type connections struct {
	conns []*Conn
	fds   []unix.PollFd // of one look at what is worth a try
}

// place takes c in, and gives its index.
func (s *connections) place(c *Conn) int {
	if i := slices.Index(s.conns, nil); i >= 0 {
		s.conns[i] = c
		return i
	}
	s.conns = append(s.conns, c)
	return len(s.conns) - 1
}

func (s *connections) remove(c *Conn) { s.conns[slices.Index(s.conns, c)] = nil }

// ask fills fds with the connections that something waits for.
func (s *connections) ask() {
	for _, c := range s.conns {
		if c == nil {
			continue
		}
		if want := c.interest(); want != 0 {
			s.fds = append(s.fds, unix.PollFd{Fd: int32(c.fd), Events: want})
		}
	}
}

// refresh sets the hints of the connections that something waits for, by one system call, and says whether any is
// worth a try.
func (s *connections) refresh() bool {
	s.fds = s.fds[:0]
	s.ask()
	if len(s.fds) == 0 || !look(s.fds) {
		return false
	}
	i := 0
	for _, c := range s.conns {
		if c != nil && c.interest() != 0 {
			c.hint(s.fds[i].Revents)
			i++
		}
	}
	return true
}
