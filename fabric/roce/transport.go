package roce

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// Transport moves calls over queue pairs. Its methods are fabric.Transport's; the Collective begins one call at a time.
type Transport struct {
	c           Config
	d           Driver
	rank, world int
	hcas        []*hca
	peers       []peer // by rank; this rank's own is unused
	memory      registry
	region      uintptr // of the shares
	room        *memory // of sums, nil where none were large
	layout      flow.Layout
	call        pending
	relays      *relays // nil where no other ranks' frames pass through
	told        bool    // completions tell of what has come

	driving sync.Mutex // held by who polls
	cause   atomic.Pointer[fabric.Cause]
	rest    *time.Timer   // of who polls
	wake    chan struct{} // closed once there is a cause
	once    sync.Once
	quiet   bool // all queue pairs have failed, and nothing of theirs moves; under driving
	closed  bool // under driving

	waiting      atomic.Uint64
	polls, parks atomic.Uint64
}

func newTransport(m Mesh, d Driver, c Config) *Transport {
	t := &Transport{c: c, d: d, rank: m.Rank(), world: m.World(), peers: make([]peer, m.World()), wake: make(chan struct{}), rest: time.NewTimer(time.Hour)}
	t.rest.Stop()
	flows := make([]*flow.Flow, t.world)
	for r := range t.peers {
		t.peers[r].c, t.peers[r].Peer = &t.c, r
		flows[r] = &t.peers[r].Flow
	}
	t.layout = flow.Layout{Rank: t.rank, World: t.world, Eager: c.EagerBytes,
		Header: frame.Header{Binding: binding(m.ID(), c.Group, c.Channel), Verify: c.Verify}}
	t.call = pending{t: t, laid: make([]*peer, 0, t.world), active: make([]*peer, 0, t.world)}
	t.layout.Open((*ends)(&t.call), flows)
	return t
}

// binding is what binds a frame to this Open of this group and channel.
func binding(id [16]byte, group, channel string) uint64 {
	h := sha256.New()
	h.Write(id[:])
	fmt.Fprintf(h, "roce\x00%s\x00%s", group, channel)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// Kind is "roce".
func (t *Transport) Kind() string { return "roce" }

// Rank is this rank.
func (t *Transport) Rank() int { return t.rank }

// World is the number of ranks.
func (t *Transport) World() int { return t.world }

// Ordered is true: sums are in rank order, whatever the size.
func (t *Transport) Ordered() bool { return true }

// Waiting is the set of ranks that the call in flight has waited for since its bytes stopped moving.
func (t *Transport) Waiting() uint64 { return t.waiting.Load() }

// Begin starts a call: it offers what is large a place, and sends what has room at once.
func (t *Transport) Begin(c *fabric.Call) (fabric.Pending, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	t.call.begin(c)
	for _, f := range t.call.active {
		if err := f.say(&t.layout); err != nil {
			return nil, t.ended(err)
		}
		if err := t.call.send(f); err != nil {
			return nil, t.ended(err)
		}
	}
	return &t.call, nil
}

// enter begins a use of what Close frees. One goroutine at a time is inside.
func (t *Transport) enter() error {
	if !t.driving.TryLock() {
		return &fabric.Cause{Kind: fabric.ErrInvalid, Peer: -1, From: -1, Text: "two goroutines are in one group's call at once; a group is one goroutine's at a time"}
	}
	if t.cause.Load() == nil {
		return nil
	}
	defer t.driving.Unlock()
	return t.ended(nil)
}

func (t *Transport) leave() { t.driving.Unlock() }

// fail makes cause the one that every later call returns, unless there is one.
func (t *Transport) fail(cause error) {
	t.cause.CompareAndSwap(nil, fabric.CauseOf(cause))
	t.once.Do(func() { close(t.wake) })
}

// ended is what a call returns: nil of one that has not failed, else the cause, once no HCA touches its memory any more.
func (t *Transport) ended(err error) error {
	if err != nil {
		t.fail(err)
	}
	cause := t.cause.Load()
	if cause == nil {
		return nil
	}
	t.silence()
	return cause
}

// completions books what has completed, and gives the cause where something has failed.
func (t *Transport) completions() error {
	for _, h := range t.hcas {
		if _, err := h.poll(); err != nil {
			return fabric.CauseOf(err)
		}
		if h.bad != nil {
			return h.bad.failed()
		}
	}
	return nil
}

// report is fail for what no call of this rank's may come across.
func (t *Transport) report(cause error) {
	t.fail(cause)
	if t.c.Failed != nil {
		t.c.Failed(t.cause.Load())
	}
}

// lost is the cause when a device of this rank fails: it names the first peer that was reached through it.
func (t *Transport) lost(h *hca, text string) error {
	for r := range t.peers {
		for _, l := range t.peers[r].lanes {
			if l.hca == h {
				return l.hop.cause(text)
			}
		}
	}
	return flow.PeerCause(-1, 0, text, nil)
}

// Abort ends the call in flight and every later one with cause. The call returns it once its memory is quiet.
func (t *Transport) Abort(cause error) { t.fail(cause) }

// Close waits, a second at most, until the peers have what was sent to them, and, where it relays, until those do without it; then it fails the queue pairs and
// frees all but what Alloc gave. It waits for a Poll or Wait in progress to leave, which it hastens.
func (t *Transport) Close() error {
	t.fail(&fabric.Cause{Kind: fabric.ErrClosed, Peer: -1, From: -1})
	whole := errors.Is(t.cause.Load(), fabric.ErrClosed)
	t.driving.Lock()
	defer t.driving.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if whole && !t.quiet {
		t.drain()
	}
	t.silence()
	var errs []error
	if t.relays != nil {
		errs = append(errs, t.relays.close(whole))
	}
	if t.room != nil {
		errs = append(errs, t.room.Close())
	}
	for _, h := range t.hcas {
		errs = append(errs, h.close())
	}
	if t.region != 0 {
		errs = append(errs, t.d.Close(t.region))
	}
	return errors.Join(errs...)
}
