package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hipfabric/hipfabric/fabric"
)

// Control is what *bootstrap.Control does: ordered small messages between ranks, where followers idle for hours. Its
// waits end by ctx, whose error they give, by the group's failure or by Close, never by the group's Timeout. Code
// written against it takes either.
type Control interface {
	// Send hands msg to one rank; an empty one is legal, more than 256 KiB is ErrInvalid. msg is the caller's again at
	// return. It waits while that rank is far behind. ErrPeerFailed, which fails the group, when the rank has left.
	Send(ctx context.Context, to int, msg []byte) error
	// Broadcast is Send to every other rank.
	Broadcast(ctx context.Context, msg []byte) error
	// Recv gives the next message of any rank, in order for each sender. One longer than buf is dropped and reported as
	// ErrInvalid. ErrPeerFailed, which fails the group, when every rank that could still send has left.
	Recv(ctx context.Context, buf []byte) (n, from int, err error)
	// Barrier returns when every rank has entered. One that ctx ended stays entered, and the next call resumes it.
	// ErrPeerFailed, which fails the group, when a rank has left that would have to enter.
	Barrier(ctx context.Context) error
}

const (
	// inboxMessages is how many messages a rank can be behind before its senders wait.
	inboxMessages = 256
	maxMessage    = 256 << 10
)

// switchboard joins the controls of one group. Every change tells all that wait: groups in tests are small.
type switchboard struct {
	ends []*control

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	round   int           // barriers that have opened
	entered int           // ranks in the next one
}

type control struct {
	board  *switchboard
	rank   int
	group  string
	fails  func() error      // the group's cause, as this rank knows it
	report func(cause error) // fails the group
	turn   chan struct{}     // has a token while nobody is in Barrier

	once sync.Once
	done chan struct{} // closed by the group's failure or Close

	// Guarded by board.mu.
	inbox  []note
	left   bool // by Close
	inside int  // the round that this rank has entered; 0 outside
}

type note struct {
	from int
	msg  []byte
}

func newSwitchboard(world int, group string) *switchboard {
	b := &switchboard{changed: make(chan struct{})}
	for r := range world {
		c := &control{board: b, rank: r, group: group, turn: make(chan struct{}, 1), done: make(chan struct{})}
		c.turn <- struct{}{}
		b.ends = append(b.ends, c)
	}
	return b
}

// tell wakes all that wait; mu is held.
func (b *switchboard) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (c *control) end() { c.once.Do(func() { close(c.done) }) }

// leave is Close: the others learn of it when they need this rank.
func (c *control) leave() {
	c.end()
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	c.left = true
	c.board.tell()
}

func (c *control) Send(ctx context.Context, to int, msg []byte) error {
	if to < 0 || to >= len(c.board.ends) || to == c.rank {
		return c.error("send", fabric.Invalidf("to is %d; it must be another rank in 0..%d", to, len(c.board.ends)-1))
	}
	if len(msg) > maxMessage {
		return c.error("send", fabric.Invalidf("a message of %d bytes; %d is the most", len(msg), maxMessage))
	}
	peer := c.board.ends[to]
	return c.await(ctx, "send", func() (bool, error) {
		if c.over() || ctx.Err() != nil || peer.left || len(peer.inbox) == inboxMessages {
			return false, nil
		}
		peer.inbox = append(peer.inbox, note{c.rank, append([]byte(nil), msg...)})
		return true, nil
	}, func(other *control) bool { return other == peer })
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
	from = -1
	err = c.await(ctx, "recv", func() (bool, error) {
		if len(c.inbox) == 0 {
			return false, nil
		}
		m := c.inbox[0]
		c.inbox, from = c.inbox[1:], m.from
		if len(m.msg) > len(buf) {
			return true, fabric.Invalidf("a message of %d bytes from rank %d is longer than the buffer's %d; it was dropped", len(m.msg), from, len(buf))
		}
		n = copy(buf, m.msg)
		return true, nil
	}, func(other *control) bool {
		alone := !slices.ContainsFunc(c.board.ends, func(e *control) bool { return e != c && !e.left })
		return alone || (other.rank == 0 && other != c) // through rank 0 everything comes
	})
	return n, from, err
}

func (c *control) Barrier(ctx context.Context) error {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	b := c.board
	return c.await(ctx, "barrier", func() (bool, error) {
		if c.inside == 0 {
			if c.over() || ctx.Err() != nil {
				return false, nil
			}
			c.inside = b.round + 1
			b.entered++
		}
		if b.entered == len(b.ends) {
			b.round, b.entered = b.round+1, 0
		}
		if b.round < c.inside {
			return false, nil
		}
		c.inside = 0
		return true, nil
	}, func(other *control) bool { return other.inside != c.inside })
}

// await tries until it is done. What is done comes before any reason to stop: the group's end, ctx, or that a rank has
// left which is needed.
func (c *control) await(ctx context.Context, op string, try func() (bool, error), needs func(*control) bool) error {
	b := c.board
	for {
		b.mu.Lock()
		done, err := try()
		if done {
			b.tell()
		}
		gone := slices.IndexFunc(b.ends, func(other *control) bool { return other != c && other.left && needs(other) })
		changed := b.changed
		b.mu.Unlock()
		switch {
		case err != nil:
			return c.error(op, err)
		case done:
			return nil
		case c.over() || gone >= 0:
			return c.error(op, c.cause(gone))
		case ctx.Err() != nil:
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-c.done:
		case <-ctx.Done():
		}
	}
}

// over says whether the group has ended for this rank.
func (c *control) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// cause is why the group has ended, or ends now because a rank has left that is needed.
func (c *control) cause(gone int) error {
	if !c.over() {
		c.report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: gone, From: c.rank, Text: fmt.Sprintf("rank %d closed its group", gone)})
	}
	if err := c.fails(); err != nil {
		return err
	}
	return fabric.ErrClosed
}

func (c *control) error(op string, err error) error {
	e := &fabric.OpError{Op: "control " + op, Group: c.group, Rank: c.rank, Peer: -1, From: -1, Err: err}
	var cause *fabric.Cause
	if errors.As(err, &cause) {
		e.Peer, e.From = cause.Peer, cause.From
	}
	return e
}
