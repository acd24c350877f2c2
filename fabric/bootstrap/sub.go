package bootstrap

import (
	"context"
	"net"
	"slices"
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
)

// maxKey is what names a sub-group's connections as well: a channel.
const maxKey = channelSize

// SubConfig says which of a session's ranks are a sub-group. Its members give the same.
type SubConfig struct {
	Name    string // at most 64 bytes; for errors and causes
	Key     string // 1 to 16 bytes: names its connections and frames; no other that lives has it
	Members []int  // the session's ranks by rank in the sub-group, each once; this rank is one of them
	// Parent, nil for the session, ends the sub-group as it ends. Of one that is not Isolated every failure is the
	// parent's too.
	Parent   *Sub
	Isolated bool
}

// Sub is a rank's membership in a group within a joined group: it has ranks of its own, and shares the session's control
// connections and heartbeat. All methods are safe for concurrent use; its ranks are the sub-group's.
type Sub struct {
	s         *Session
	name, key string
	members   []int
	set       uint64 // of members
	rank      int
	life      context.Context // over at its first failure or its end
	end       context.CancelFunc
	turn      chan struct{} // holds a token while no gather is in progress
	cause     atomic.Pointer[fabric.Cause]

	// Session.mu guards the rest.
	parent   *Sub
	isolated bool
	children map[*Sub]struct{}
	outer    *fabric.Cause // the cause, of the session's ranks; set before the cause is announced
	onCause  []func(error)
	gather   subGathering
	agreeing bool // in Agree
	agreed   bool // all have come to it
}

// Sub makes this rank's part of a sub-group. It neither blocks nor speaks to anyone. ErrInvalid for a config out of its
// bounds or a key in use; ErrClosed or the cause when the session or the parent has ended.
func (s *Session) Sub(c SubConfig) (*Sub, error) {
	u := &Sub{s: s, name: c.Name, key: c.Key, members: slices.Clone(c.Members), rank: slices.Index(c.Members, s.cfg.Rank),
		turn: make(chan struct{}, 1), children: map[*Sub]struct{}{}, isolated: c.Isolated}
	for _, r := range c.Members {
		if r < 0 || r >= s.cfg.World || u.set&(1<<r) != 0 {
			return nil, s.opError("sub", fabric.Invalidf("members are %v; each of the ranks 0 to %d at most once", c.Members, s.cfg.World-1))
		}
		u.set |= 1 << r
	}
	switch {
	case u.rank < 0:
		return nil, s.opError("sub", fabric.Invalidf("members are %v; rank %d itself is missing", c.Members, s.cfg.Rank))
	case len(c.Name) > maxName:
		return nil, s.opError("sub", fabric.Invalidf("the name has %d bytes; at most %d are allowed", len(c.Name), maxName))
	case c.Key == "" || len(c.Key) > maxKey:
		return nil, s.opError("sub", fabric.Invalidf("the key is %q; 1 to %d bytes are needed", c.Key, maxKey))
	}
	u.turn <- struct{}{}
	u.life, u.end = context.WithCancel(s.life)
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.gone("sub")
	if c.Parent != nil {
		err = c.Parent.gone("sub")
	}
	if err == nil && s.subs[u.key] != nil {
		err = s.opError("sub", fabric.Invalidf("the key %q names another sub-group that lives", c.Key))
	}
	if err != nil {
		u.end()
		return nil, err
	}
	s.subs[u.key] = u
	u.under(c.Parent)
	s.sweepParked()
	return u, nil
}

// under hangs u below parent; Session.mu is held.
func (u *Sub) under(parent *Sub) {
	if u.parent != nil {
		delete(u.parent.children, u)
	}
	if u.parent = parent; parent != nil {
		parent.children[u] = struct{}{}
	}
}

// Move hangs u below another parent, as if it had been made there: if that has ended, u ends as it did.
func (u *Sub) Move(parent *Sub, isolated bool) {
	s := u.s
	s.mu.Lock()
	if u.life.Err() != nil {
		s.mu.Unlock()
		return
	}
	u.under(parent)
	u.isolated = isolated
	cause, closed := s.cause.Load(), s.closed
	if parent != nil {
		cause, closed = parent.outer, closed || s.subs[parent.key] != parent
	}
	if closed && cause == nil {
		u.remove()
	}
	s.mu.Unlock()
	if cause != nil {
		u.settle(cause)
	}
}

// Rank is this rank in the sub-group.
func (u *Sub) Rank() int { return u.rank }

// World is the number of its ranks.
func (u *Sub) World() int { return len(u.members) }

// Members are the session's ranks by rank in the sub-group.
func (u *Sub) Members() []int { return slices.Clone(u.members) }

// ID is the session's.
func (u *Sub) ID() [16]byte { return u.s.ID() }

// Key names the sub-group's connections: the channel of its lanes.
func (u *Sub) Key() string { return u.key }

// Done is closed at the sub-group's first failure, at Close, and at its parent's end.
func (u *Sub) Done() <-chan struct{} { return u.life.Done() }

// Rails are the session's to that rank.
func (u *Sub) Rails(peer int) []fabric.Rail { return u.s.Rails(u.members[peer]) }

// Dial opens a data connection with a rank that calls Accept, as Session.Dial: which of the two dials is decided by
// their ranks in the session.
func (u *Sub) Dial(ctx context.Context, peer int, l fabric.Lane) (*net.TCPConn, error) {
	return u.connect(ctx, "dial", peer, l)
}

// Accept is the other side of Dial.
func (u *Sub) Accept(ctx context.Context, peer int, l fabric.Lane) (*net.TCPConn, error) {
	return u.connect(ctx, "accept", peer, l)
}

func (u *Sub) connect(ctx context.Context, op string, peer int, l fabric.Lane) (*net.TCPConn, error) {
	if peer < 0 || peer >= len(u.members) || peer == u.rank {
		return nil, u.opError(op, fabric.Invalidf("peer is %d; another rank of 0 to %d is needed", peer, len(u.members)-1))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(u.life, cancel)()
	open := u.s.Accept
	if u.members[peer] < u.s.cfg.Rank {
		open = u.s.Dial
	}
	c, err := open(ctx, u.members[peer], l)
	if err != nil {
		if gone := u.gone(op); gone != nil {
			return nil, gone
		}
		return nil, u.opError(op, u.inwardError(err))
	}
	return c, nil
}

// Close ends this rank's part and that of the sub-groups below it: what waits in them returns ErrClosed. It says nothing
// to the other ranks but that rank 0 may forget what it holds. It does not block, and is idempotent.
func (u *Sub) Close() {
	s := u.s
	s.mu.Lock()
	u.remove()
	s.sweepParked()
	s.mu.Unlock()
	s.post(func() { s.loop.leaveSub(u.key) })
}

// remove takes u and all below it out of the session; Session.mu is held.
func (u *Sub) remove() {
	for child := range u.children {
		child.remove()
	}
	if u.parent != nil {
		delete(u.parent.children, u)
	}
	if u.s.subs[u.key] == u {
		delete(u.s.subs, u.key)
	}
	u.end()
}

// sweepParked closes what was dialled for a sub-group that has ended and given up since; mu is held.
func (s *Session) sweepParked() {
	for k, p := range s.parked {
		if gone(p.conn) {
			_ = p.conn.Close()
			delete(s.parked, k)
		}
	}
}
