package link

import (
	"fmt"
	"sync/atomic"
	"syscall"
)

const (
	// HeaderSize is the bytes before every payload; the engine moves them and does not read them.
	HeaderSize = 64
	// inline is the payload up to which a frame is copied next to its header: one buffer costs the kernel less than two,
	// and up to here more than the copy.
	inline = 16 << 10
	// stageBytes is what a connection has for that until a larger payload comes.
	stageBytes = HeaderSize + 512
	// mostAtOnce bounds one system call, since the runtime cannot stop the thread in it.
	mostAtOnce = 1 << 20
)

// Conn is one connection. It sends one frame and receives one frame at a time, each at its own pace.
type Conn struct {
	fd  int
	out transfer
	in  inbound

	info tcpInfo

	// Readable and Writable are hints: false after a call that would have blocked, true again after the poller said so,
	// or by an owner who would rather try.
	Readable, Writable bool
	armed              uint32 // poll events that the poller will tell of, once
	known              bool   // to the poller

	sentBytes, receivedBytes   atomic.Uint64
	sentFrames, receivedFrames atomic.Uint64
}

// transfer is the frame being sent. A small payload lies behind the header in stage; a larger one stays where it is.
type transfer struct {
	stage   []byte
	payload []byte
	whole   int // bytes of the frame
	moved   int
	active  bool
	vector  vector
}

func (t *transfer) begin(payload []byte) {
	t.payload, t.whole, t.moved, t.active = payload, HeaderSize+len(payload), 0, true
	if t.inlined() && len(t.stage) < t.whole {
		t.stage = append(make([]byte, 0, HeaderSize+inline), t.stage[:HeaderSize]...)[:HeaderSize+inline]
	}
}

func (t *transfer) inlined() bool { return len(t.payload) <= inline }

// SendHeader is the header of the next frame to send: fill it, then call Send.
func (c *Conn) SendHeader() *[HeaderSize]byte { return (*[HeaderSize]byte)(c.out.stage) }

// Send begins to send the header that was filled and payload, which stays the connection's until Sending is false.
func (c *Conn) Send(payload []byte) {
	c.out.begin(payload)
	if c.out.inlined() {
		copy(c.out.stage[HeaderSize:], payload)
	}
}

// Sending says whether a frame is under way.
func (c *Conn) Sending() bool { return c.out.active }

// Flush writes what the socket takes, of the payload at most limit bytes in all since Send. It gives the bytes written.
func (c *Conn) Flush(limit int) (int, error) {
	t := &c.out
	most := min(t.whole, HeaderSize+limit)
	total := 0
	for t.moved < most {
		n, errno := c.write(most - t.moved)
		if errno != 0 {
			if errno == syscall.EAGAIN {
				c.Writable = false
				break
			}
			return total, &SocketError{"send", errno}
		}
		t.moved += n
		total += n
	}
	if t.moved == t.whole {
		t.active, t.payload = false, nil
		c.sentFrames.Add(1)
	}
	if total > 0 {
		c.sentBytes.Add(uint64(total))
	}
	return total, nil
}

// Counts are the connection's monotonic counters; safe from any goroutine.
func (c *Conn) Counts() (sentBytes, receivedBytes, sentFrames, receivedFrames uint64) {
	return c.sentBytes.Load(), c.receivedBytes.Load(), c.sentFrames.Load(), c.receivedFrames.Load()
}

// SocketError is a failed system call on a connection.
type SocketError struct {
	Call  string
	Errno syscall.Errno
}

func (e *SocketError) Error() string { return fmt.Sprintf("%s: %v", e.Call, e.Errno) }
func (e *SocketError) Unwrap() error { return e.Errno }
