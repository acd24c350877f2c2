package fabrictest

import (
	"context"
	"sync"

	"github.com/hipfabric/hipfabric/fabric"
)

// Control is what *bootstrap.Control does: ordered small messages between ranks, where followers idle for hours. Its
// waits end by ctx, by the group's failure or by Close, never by the group's Timeout. Code written against it takes
// either.
type Control interface {
	// Send hands msg to one rank; an empty one is legal. msg is the caller's again at return.
	Send(ctx context.Context, to int, msg []byte) error
	// Broadcast is Send to every other rank.
	Broadcast(ctx context.Context, msg []byte) error
	// Recv gives the next message of any rank, in order for each sender. One longer than buf is dropped and reported as
	// ErrInvalid, with n its length.
	Recv(ctx context.Context, buf []byte) (n, from int, err error)
	// Barrier returns when every rank has entered.
	Barrier(ctx context.Context) error
}

// inboxMessages is how many messages a rank can be behind before its senders wait.
const inboxMessages = 256

// switchboard joins the controls of one group.
type switchboard struct {
	ends []*control

	mu      sync.Mutex
	entered int
	opened  chan struct{} // closed when every rank is in this barrier
}

type control struct {
	board *switchboard
	rank  int
	group string
	inbox chan note
	fails func() error // the group's cause, as this rank knows it

	once sync.Once
	done chan struct{} // closed by the group's failure or Close
}

type note struct {
	from int
	msg  []byte
}

func newSwitchboard(world int, group string) *switchboard {
	b := &switchboard{opened: make(chan struct{})}
	for r := range world {
		b.ends = append(b.ends, &control{board: b, rank: r, group: group, inbox: make(chan note, inboxMessages), done: make(chan struct{})})
	}
	return b
}

func (c *control) end() { c.once.Do(func() { close(c.done) }) }

func (c *control) Send(ctx context.Context, to int, msg []byte) error {
	if to < 0 || to >= len(c.board.ends) || to == c.rank {
		return c.error("send", fabric.Invalidf("to is %d; it must be another rank in 0..%d", to, len(c.board.ends)-1))
	}
	if err := c.ended(ctx); err != nil {
		return c.error("send", err)
	}
	peer := c.board.ends[to]
	select {
	case peer.inbox <- note{c.rank, append([]byte(nil), msg...)}:
		return nil
	case <-peer.done: // gone; this rank's own end tells why, soon
		select {
		case <-c.done:
		case <-ctx.Done():
		}
	case <-c.done:
	case <-ctx.Done():
	}
	return c.error("send", c.ended(ctx))
}

func (c *control) Broadcast(ctx context.Context, msg []byte) error {
	for to := range c.board.ends {
		if to == c.rank {
			continue
		}
		if err := c.Send(ctx, to, msg); err != nil {
			return err
		}
	}
	return nil
}

func (c *control) Recv(ctx context.Context, buf []byte) (n, from int, err error) {
	select {
	case m := <-c.inbox: // what came before the end is still worth reading
		return c.deliver(buf, m)
	default:
	}
	select {
	case m := <-c.inbox:
		return c.deliver(buf, m)
	case <-c.done:
	case <-ctx.Done():
	}
	return 0, -1, c.error("recv", c.ended(ctx))
}

func (c *control) deliver(buf []byte, m note) (int, int, error) {
	if len(m.msg) > len(buf) {
		return len(m.msg), m.from, c.error("recv", fabric.Invalidf("message of %d bytes from rank %d; the buffer has %d", len(m.msg), m.from, len(buf)))
	}
	return copy(buf, m.msg), m.from, nil
}

func (c *control) Barrier(ctx context.Context) error {
	if err := c.ended(ctx); err != nil {
		return c.error("barrier", err)
	}
	b := c.board
	b.mu.Lock()
	opened := b.opened
	b.entered++
	if b.entered == len(b.ends) {
		b.entered, b.opened = 0, make(chan struct{})
		close(opened)
	}
	b.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-c.done:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened != opened {
		return nil // it opened in the meantime
	}
	b.entered--
	return c.error("barrier", c.ended(ctx))
}

// ended says what stops this rank: the group's cause, Close or ctx.
func (c *control) ended(ctx context.Context) error {
	select {
	case <-c.done:
		if err := c.fails(); err != nil {
			return err
		}
		return fabric.ErrClosed
	default:
		return ctx.Err()
	}
}

func (c *control) error(op string, err error) error {
	e := &fabric.OpError{Op: "control " + op, Group: c.group, Rank: c.rank, Peer: -1, From: -1, Err: err}
	if cause, ok := err.(*fabric.Cause); ok { //nolint:errorlint // only ended's own, never wrapped
		e.Peer, e.From = cause.Peer, cause.From
	}
	return e
}
