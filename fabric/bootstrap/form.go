package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

// lingerTime is how long rank 0, after a mismatch, stays to tell the ranks that are still to come.
const lingerTime = 2 * time.Second

// formation is rank 0's collecting of the others, until the group starts or fails to.
type formation struct {
	s *Session

	mu      sync.Mutex
	members []*member // by rank; nil while not there
	told    map[int]bool
	cause   *fabric.Cause
	running bool
	changed chan struct{} // holds a token after a change
}

// member is a proven dialer.
type member struct {
	rank    int
	conn    *net.TCPConn
	in, out *seal
	joining joining
}

func newFormation(s *Session) *formation {
	return &formation{s: s, members: make([]*member, s.cfg.World), told: map[int]bool{}, changed: make(chan struct{}, 1)}
}

// greet takes over a connection whose control hello has been proven.
func (f *formation) greet(c *net.TCPConn, h hello, x *exchange) error {
	in, out, err := x.frames(f.s.ID())
	if err != nil {
		return err
	}
	m := &member{rank: int(h.rank), conn: c, in: in, out: out}
	if h.version != f.s.cfg.version {
		// The dialer knows by the reply; its frames may have any shape, so none is exchanged.
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.running {
			f.fail(versionMismatch(f.s.cfg.version, m.rank, h.version))
			f.told[m.rank] = true
		}
		return c.Close()
	}
	_ = c.SetDeadline(time.Now().Add(helloTime))
	t, payload, err := readFrame(c, m.in)
	if err != nil {
		return fmt.Errorf("rank %d: no join: %w", m.rank, err)
	}
	if t != frameJoin {
		return fmt.Errorf("rank %d: %w: type %d instead of a join", m.rank, errFrame, t)
	}
	if m.joining, err = decodeJoining(payload); err != nil {
		return fmt.Errorf("rank %d: %w", m.rank, err)
	}
	if err := sock.Tune(c, sock.Control); err != nil {
		return err
	}
	f.admit(m)
	return nil
}

func versionMismatch(zero uint16, rank int, theirs uint16) *fabric.Cause {
	return mismatch("wire version", fmt.Sprint(zero), rank, fmt.Sprint(theirs))
}

func (f *formation) admit(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		_ = writeFrame(m.conn, m.out, frameRunning, nil)
		_ = m.conn.Close()
		return
	}
	if f.cause == nil {
		if cause := f.check(m); cause != nil {
			f.fail(cause)
		}
	}
	if f.cause != nil {
		f.tell(m)
		f.signal()
		return
	}
	if old := f.members[m.rank]; old != nil {
		_ = old.conn.Close()
	}
	_ = m.conn.SetDeadline(time.Time{})
	f.members[m.rank] = m
	f.signal()
}

// check compares a member with rank 0 and with those already here. A rank that is here twice is a mismatch only while
// the first is alive; a dead one was restarted.
func (f *formation) check(m *member) *fabric.Cause {
	c := &f.s.cfg
	j := &m.joining
	switch {
	case j.world != c.World:
		return mismatch("World", fmt.Sprint(c.World), m.rank, fmt.Sprint(j.world))
	case j.group != c.Group:
		return mismatch("Group", fmt.Sprintf("%q", c.Group), m.rank, fmt.Sprintf("%q", j.group))
	}
	if d := difference(c.compared(), j.settings, m.rank); d != nil {
		return d
	}
	if m.rank >= c.World {
		return mismatch("World", fmt.Sprint(c.World), m.rank, fmt.Sprintf("Rank %d", m.rank))
	}
	if m.rank == 0 {
		return duplicate(0, f.s.listener.addresses()[0], m.conn.RemoteAddr().String())
	}
	if old := f.members[m.rank]; old != nil && !gone(old.conn) {
		return duplicate(m.rank, old.conn.RemoteAddr().String(), m.conn.RemoteAddr().String())
	}
	return nil
}

func duplicate(rank int, first, second string) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrMismatch, Peer: rank, From: 0,
		Text: fmt.Sprintf("Rank: %d is there twice, at %s and at %s; every process needs its own", rank, first, second)}
}

// fail ends the formation and tells those who are here; mu is held.
func (f *formation) fail(cause *fabric.Cause) {
	if f.cause != nil {
		return
	}
	f.cause = cause
	for r, m := range f.members {
		if m != nil {
			f.tell(m)
			f.members[r] = nil
		}
	}
	f.signal()
}

func (f *formation) tell(m *member) {
	_ = m.conn.SetDeadline(time.Now().Add(helloTime))
	_ = writeFrame(m.conn, m.out, frameVerdict, encodeCause(f.cause))
	_ = m.conn.Close()
	f.told[m.rank] = true
}

func (f *formation) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// wait blocks until all ranks are here, and starts the group; or until it cannot be.
func (f *formation) wait(ctx context.Context, began time.Time) ([]*link, error) {
	for {
		f.mu.Lock()
		links, err := f.start()
		cause := f.cause
		f.mu.Unlock()
		if cause != nil {
			f.linger(ctx)
			return nil, cause
		}
		if links != nil || err != nil {
			return links, err
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			if links, err := f.start(); links != nil || err != nil {
				return links, err // the last one came at the last moment
			}
			f.fail(f.late(ctx, began))
			return nil, f.cause
		}
	}
}

func (f *formation) late(ctx context.Context, began time.Time) *fabric.Cause {
	var absent []int
	for r := 1; r < len(f.members); r++ {
		if f.members[r] == nil {
			absent = append(absent, r)
		}
	}
	first := -1
	if len(absent) > 0 {
		first = absent[0]
	}
	return endedBy(ctx, first, 0, fmt.Sprintf("ranks %v have not joined rank 0 at %v in %v", absent, f.s.cfg.Master,
		time.Since(began).Round(time.Millisecond)))
}

// endedBy is the cause when a context ended before its work.
func endedBy(ctx context.Context, peer, from int, text string) *fabric.Cause {
	c := &fabric.Cause{Kind: fabric.ErrTimeout, Peer: peer, From: from, Text: clip(text), Err: ctx.Err()}
	if errors.Is(ctx.Err(), context.Canceled) {
		c.Kind, c.Text = fabric.ErrAborted, clip("cancelled: "+text)
	}
	return c
}

// linger waits until every rank has heard the cause, for a bounded time.
func (f *formation) linger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	for {
		f.mu.Lock()
		all := true
		for r := 1; r < f.s.cfg.World; r++ {
			all = all && f.told[r]
		}
		f.mu.Unlock()
		if all {
			return
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return
		}
	}
}

// start sends the table to all once they are here and alive, and takes their sockets; mu is held. Nil links and no
// error mean that somebody is still missing.
func (f *formation) start() ([]*link, error) {
	if f.cause != nil {
		return nil, nil
	}
	for r := 1; r < len(f.members); r++ {
		if m := f.members[r]; m != nil && gone(m.conn) {
			_ = m.conn.Close()
			f.members[r] = nil
		}
	}
	places := make([]place, len(f.members))
	places[0] = f.s.advertise(here())
	for r := 1; r < len(f.members); r++ {
		if f.members[r] == nil {
			return nil, nil
		}
		places[r] = f.members[r].joining.place
	}
	f.running = true
	f.s.settle(places)
	table := encodePlaces(places)
	var links []*link
	var failed error
	for _, m := range f.members[1:] {
		// One that dies now is found by the loop, as any death.
		_ = m.conn.SetDeadline(time.Now().Add(helloTime))
		_ = writeFrame(m.conn, m.out, frameStart, table)
		fd, err := sock.Take(m.conn)
		if err != nil {
			_ = m.conn.Close()
			failed = errors.Join(failed, err)
		}
		if fd >= 0 {
			links = append(links, newLink(m.rank, fd, m.in, m.out))
		}
	}
	f.members = nil
	if failed != nil {
		for _, k := range links {
			k.close()
		}
		return nil, failed
	}
	return links, nil
}

// abandon closes what a failed Join leaves.
func (f *formation) abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = true
	for _, m := range f.members {
		if m != nil {
			_ = m.conn.Close()
		}
	}
	f.members = nil
}
