//go:build linux || darwin

package link

import "golang.org/x/sys/unix"

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

// looked is the descriptors of one look at what is worth a try.
type looked struct{ fds []unix.PollFd }

// refresh sets the hints of the connections that something waits for, by one system call, and says whether any is
// worth a try.
func (p *poller) refresh() bool {
	p.fds = p.fds[:0]
	for _, c := range p.conns {
		if want := c.interest(); want != 0 {
			p.fds = append(p.fds, unix.PollFd{Fd: int32(c.fd), Events: want})
		}
	}
	if len(p.fds) == 0 || !look(p.fds) {
		return false
	}
	i := 0
	for _, c := range p.conns {
		if c.interest() != 0 {
			c.hint(p.fds[i].Revents)
			i++
		}
	}
	return true
}
