package bootstrap

import (
	"context"
	"fmt"
	"slices"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	// MaxMessage is the most bytes of one message.
	MaxMessage = 256 << 10

	window      = 1 << 20 // bytes on their way from one rank to another
	messageCost = 64      // that a message counts beside its bytes, so that empty ones are bounded too
	creditStep  = 256 << 10
	everyone    = nobody // as the target of a message
)

// Control carries an engine's small messages between ranks, through rank 0, and its barriers. It is where followers wait
// for hours: its waits end by their context, by the group's failure (the group's cause in a *fabric.OpError) or by
// Close (ErrClosed), never by a timeout. A context's end returns its error and leaves the group alone. All methods are
// safe for concurrent use.
type Control struct {
	s       *Session
	barrier chan struct{} // holds a token while nobody is in Barrier

	// Session.mu guards the rest.
	credit            [fabric.MaxWorld]int // bytes that may still be sent to each rank
	taken             [fabric.MaxWorld]int // bytes received from each rank and taken by Recv, not credited yet
	inbox             []letter
	entered, released uint32
	inside            bool // entered, and Barrier has not returned nil for it yet
}

type letter struct {
	from int
	data []byte
}

func newControl(s *Session) *Control {
	c := &Control{s: s, barrier: make(chan struct{}, 1)}
	c.barrier <- struct{}{}
	for r := range c.credit {
		c.credit[r] = window
	}
	return c
}

func cost(bytes int) int { return bytes + messageCost }

// Send sends msg, which may be empty, to another rank. Messages of one sender arrive in order. It copies msg and
// returns once the message is queued; while 1 MiB is on its way to that rank already, it waits. ErrInvalid for a
// message over MaxMessage or a rank that is none of the others; ErrPeerFailed, which fails the group, when the rank
// has left.
func (c *Control) Send(ctx context.Context, to int, msg []byte) error {
	if to < 0 || to >= c.s.cfg.World || to == c.s.cfg.Rank {
		return c.s.opError("control send", fabric.Invalidf("to is %d; another rank of 0 to %d is needed", to, c.s.cfg.World-1))
	}
	return c.send(ctx, "control send", 1<<to, to, msg)
}

// Broadcast sends msg to every other rank, as Send.
func (c *Control) Broadcast(ctx context.Context, msg []byte) error {
	return c.send(ctx, "control broadcast", c.s.others(), everyone, msg)
}

func (c *Control) send(ctx context.Context, op string, targets uint64, to int, msg []byte) error {
	s := c.s
	if len(msg) > MaxMessage {
		return s.opError(op, fabric.Invalidf("the message has %d bytes; at most %d are allowed: send it in parts", len(msg), MaxMessage))
	}
	needed := targets
	if s.cfg.Rank != 0 {
		needed |= 1 // through rank 0 everything goes
	}
	ready := func() bool {
		if s.left&needed != 0 {
			return false
		}
		for r := range s.cfg.World {
			if targets&(1<<r) != 0 && c.credit[r] < cost(len(msg)) {
				return false
			}
		}
		// Taking the credit and the place in the queue are one step, so that the order of sends is that of the queue.
		for r := range s.cfg.World {
			if targets&(1<<r) != 0 {
				c.credit[r] -= cost(len(msg))
			}
		}
		var w writer
		w.u16(uint16(to))
		w = append(w, msg...)
		s.queue = append(s.queue, func() { s.loop.message(w) })
		s.loop.p.wake()
		return true
	}
	return s.await(ctx, op, ready, func() *fabric.Cause { return s.missing(needed) })
}

// Recv waits for the next message of any rank, copies it to buf and says its length and sender. A message that is longer
// than buf is dropped: ErrInvalid says both lengths, from says whose it was. When every rank that could still send has
// left it is ErrPeerFailed, which fails the group.
func (c *Control) Recv(ctx context.Context, buf []byte) (n, from int, err error) {
	s := c.s
	var got letter
	ready := func() bool {
		if len(c.inbox) == 0 {
			return false
		}
		got = c.inbox[0]
		c.inbox[0] = letter{}
		if c.inbox = c.inbox[1:]; len(c.inbox) == 0 {
			c.inbox = nil
		}
		if c.taken[got.from] += cost(len(got.data)); c.taken[got.from] >= creditStep {
			amount := c.taken[got.from]
			c.taken[got.from] = 0
			s.queue = append(s.queue, func() { s.loop.creditTo(got.from, amount) })
			s.loop.p.wake()
		}
		return true
	}
	stuck := func() *fabric.Cause {
		if others := s.others(); others != 0 && s.left&others == others {
			return s.missing(others)
		}
		if s.cfg.Rank != 0 {
			return s.missing(1) // through rank 0 everything comes
		}
		return nil
	}
	if err := s.await(ctx, "control recv", ready, stuck); err != nil {
		return 0, -1, err
	}
	if len(got.data) > len(buf) {
		return 0, got.from, s.opError("control recv", fabric.Invalidf("a message of %d bytes from rank %d is longer than the buffer's %d; it was dropped",
			len(got.data), got.from, len(buf)))
	}
	return copy(buf, got.data), got.from, nil
}

// Barrier returns when every rank has entered it. One that was ended by its context stays entered, and the next call
// resumes it; one whose context had ended before enters nothing. When a rank has left that would have to enter it is ErrPeerFailed, which fails the group.
func (c *Control) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-c.barrier:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.barrier <- struct{}{} }()
	s := c.s
	s.mu.Lock()
	if !c.inside {
		c.inside = true
		c.entered++
		n := c.entered
		if !s.ended {
			s.queue = append(s.queue, func() { s.loop.enter(n) })
			s.loop.p.wake()
		}
	}
	s.mu.Unlock()
	out := func() bool {
		c.inside = c.released != c.entered
		return !c.inside
	}
	return s.await(ctx, "control barrier", out, func() *fabric.Cause { return s.missing(s.others()) })
}

func (c *Control) heardMessage(b []byte) error {
	r := reader{b: b}
	from, data := r.rank(), slices.Clone(r.rest())
	if err := r.end("message"); err != nil {
		return err
	}
	return c.deliver(from, data)
}

func (c *Control) deliver(from int, data []byte) error {
	if from < 0 || from >= c.s.cfg.World || from == c.s.cfg.Rank || len(data) > MaxMessage {
		return fmt.Errorf("%w: a message of %d bytes from rank %d", errFrame, len(data), from)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.inbox = append(c.inbox, letter{from, data})
	c.s.notify()
	return nil
}

func (c *Control) heardCredit(b []byte) error {
	r := reader{b: b}
	from, amount := r.rank(), int(r.u32())
	if err := r.end("credit"); err != nil {
		return err
	}
	return c.addCredit(from, amount)
}

func (c *Control) addCredit(rank, amount int) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if rank < 0 || rank >= c.s.cfg.World || amount > window-c.credit[rank] {
		return fmt.Errorf("%w: credit of %d bytes from rank %d", errFrame, amount, rank)
	}
	c.credit[rank] += amount
	c.s.notify()
	return nil
}

func (c *Control) heardRelease(b []byte) error {
	r := reader{b: b}
	n := r.u32()
	if err := r.end("release"); err != nil {
		return err
	}
	return c.release(n)
}

func (c *Control) release(n uint32) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if n != c.entered || c.released == c.entered {
		return fmt.Errorf("%w: release of barrier %d while in %d", errFrame, n, c.entered)
	}
	c.released = n
	c.s.notify()
	return nil
}
