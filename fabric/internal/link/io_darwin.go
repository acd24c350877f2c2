package link

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

type vector struct{}

func (c *Conn) write(most int) (int, syscall.Errno) {
	return retry(func() (int, error) { return unix.Write(c.fd, c.out.rest(most)) })
}

func (c *Conn) read() (int, syscall.Errno) {
	head, body := c.in.room(mostAtOnce)
	if len(head) == 0 {
		head = body
	}
	return retry(func() (int, error) { return unix.Read(c.fd, head) })
}

// rest is the next run of the frame: of the stage, or of a payload that lies elsewhere.
func (t *transfer) rest(most int) []byte {
	most = min(most, mostAtOnce)
	switch {
	case t.inlined():
		return t.stage[t.moved : t.moved+most]
	case t.moved < HeaderSize:
		return t.stage[t.moved:min(HeaderSize, t.moved+most)]
	default:
		return t.payload[t.moved-HeaderSize : t.moved-HeaderSize+most]
	}
}

func retry(call func() (int, error)) (int, syscall.Errno) {
	for {
		n, err := call()
		var errno syscall.Errno
		if err == nil {
			return n, 0
		}
		if !errors.As(err, &errno) {
			errno = unix.EIO
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

func YieldThread() {}

func look(fds []unix.PollFd) bool {
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
