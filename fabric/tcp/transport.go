package tcp

import (
	"errors"
	"os"
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

// Transport moves calls over sockets. Its methods are fabric.Transport's; the Collective begins one call at a time.
type Transport struct {
	c           Config
	rank, world int
	group       *link.Group // nil in a world of 1
	peers       []peer      // by rank; this rank's own is unused
	layout      flow.Layout
	call        pending
	errand      pending // moves what pairs owe each other outside calls
	mend        *mender // nil where no lane can be spared
	mendDue     atomic.Bool
	waiting     atomic.Uint64
	ended       atomic.Pointer[fabric.Cause] // a world of 1 has no group to keep it
}

func newTransport(m Mesh, c Config) *Transport {
	t := &Transport{c: c, rank: m.Rank(), world: m.World(), peers: make([]peer, m.World())}
	flows := make([]*flow.Flow, t.world)
	for r := range t.peers {
		t.peers[r].c, t.peers[r].Peer = &t.c, r
		flows[r] = &t.peers[r].Flow
	}
	t.layout = flow.Layout{Rank: t.rank, World: t.world, Eager: c.EagerBytes,
		Header: frame.Header{Binding: binding(m.ID(), c.Group, c.Channel), Verify: c.Verify}}
	t.call, t.errand = newPending(t), newPending(t)
	t.layout.Open((*ends)(&t.call), flows)
	return t
}

// Kind is "tcp".
func (t *Transport) Kind() string { return "tcp" }

// Rank is this rank.
func (t *Transport) Rank() int { return t.rank }

// World is the number of ranks.
func (t *Transport) World() int { return t.world }

// Ordered is true: sums are in rank order, whatever the size.
func (t *Transport) Ordered() bool { return true }

// Waiting is the set of ranks that the call in flight has waited for since its bytes stopped moving.
func (t *Transport) Waiting() uint64 { return t.waiting.Load() }

// Begin starts a call: it lays out the flows and sends what the sockets take at once.
func (t *Transport) Begin(c *fabric.Call) (fabric.Pending, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	p := &t.call
	p.begin(c)
	for _, f := range p.active {
		if !f.wide {
			continue
		}
		if f.up == 0 {
			return nil, t.noLane(f)
		}
		if err := p.recall(f); err != nil {
			return nil, err
		}
	}
	for _, f := range p.active {
		if err := p.send(f, true); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (t *Transport) enter() error {
	if t.group == nil {
		if c := t.ended.Load(); c != nil {
			return c
		}
		return nil
	}
	return t.causeOf(t.group.Enter())
}

func (t *Transport) leave() {
	if t.group != nil {
		t.group.Leave()
	}
}

// causeOf turns what the engine says into a cause.
func (t *Transport) causeOf(err error) error {
	if err == nil {
		return nil
	}
	var c *fabric.Cause
	switch {
	case errors.As(err, &c):
		return c
	case errors.Is(err, os.ErrClosed):
		return &fabric.Cause{Kind: fabric.ErrClosed, Peer: -1, From: -1}
	case errors.Is(err, link.ErrDriven):
		return &fabric.Cause{Kind: fabric.ErrInvalid, Peer: -1, From: -1, Text: err.Error()}
	default:
		return fabric.CauseOf(err)
	}
}

// Alloc gives ordinary memory: sockets read and write any.
func (t *Transport) Alloc(n int) (fabric.Memory, error) { return memory(make([]byte, n)), nil }

type memory []byte

func (m memory) Bytes() []byte { return m }
func (m memory) Close() error  { return nil }

// Abort ends the call in flight and every later one with cause.
func (t *Transport) Abort(cause error) {
	if t.group != nil {
		t.group.Abort(cause)
		return
	}
	t.ended.CompareAndSwap(nil, fabric.CauseOf(cause))
}

// Close closes the connections once a Poll or Wait in progress has left, which Abort hastens.
func (t *Transport) Close() error {
	closed := &fabric.Cause{Kind: fabric.ErrClosed, Peer: -1, From: -1}
	t.Abort(closed)
	if t.mend != nil {
		t.mend.close()
	}
	if t.group != nil {
		t.group.Close()
	}
	return nil
}

// Stats reads the counters.
func (t *Transport) Stats() fabric.TransportStats {
	s := fabric.TransportStats{Kind: t.Kind()}
	if t.group == nil {
		return s
	}
	s.Polls, s.Parks = t.group.Counts()
	for p := range t.peers {
		if p == t.rank {
			continue
		}
		ps := fabric.PeerStats{Peer: p}
		for _, r := range t.peers[p].rails {
			rs := r.stats()
			ps.Rails = append(ps.Rails, rs)
			ps.SentBytes += rs.SentBytes
			ps.ReceivedBytes += rs.ReceivedBytes
			ps.SentFrames += rs.SentFrames
			ps.ReceivedFrames += rs.ReceivedFrames
		}
		s.Peers = append(s.Peers, ps)
	}
	return s
}
