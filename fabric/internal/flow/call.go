package flow

import (
	"fmt"
	"iter"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	"github.com/hipfabric/hipfabric/fabric/internal/reduce"
)

// copyGrain is how much of its own block a rank copies between two looks at its peers.
const copyGrain = 128 << 10

// Ends is what carries spans to peers and from them. It cuts each and adds it to the peer's Flow.
type Ends interface {
	Send(peer int, s Span)
	Receive(peer int, s Span)
	// SentForGood says whether the first span out may be overwritten.
	SentForGood(peer int) bool
}

// Layout is the call in flight: who gets what from whom, and what this rank does itself. It is reused.
type Layout struct {
	Rank, World int
	Eager       int                // bytes up to which a call is one frame a peer
	Header      frame.Header       // Binding and Verify are the transport's
	Arena       func(n int) []byte // gives n bytes, kept between calls, for what is combined
	Now         *fabric.Call       // in flight, else the last one; nil before the first

	ends  Ends
	flows []*Flow // by rank
	arena []byte  // where other ranks' contributions land

	ownOut, ownIn []byte // this rank's block for itself: what is left to copy

	inputs   [][]byte // of a reduction, by rank
	views    [][]byte // the run of inputs being combined
	block    []byte   // what this rank combines
	combined int      // bytes of it that are final
	// overwrites says that block is also what is being sent to the others, who must have it first.
	overwrites bool
	expected   [frame.Size]byte
}

// Open readies the layout for flows by rank, this rank's own unused.
func (l *Layout) Open(ends Ends, flows []*Flow) {
	l.ends, l.flows = ends, flows
	l.inputs, l.views = make([][]byte, l.World), make([][]byte, l.World)
	if l.Arena == nil {
		l.Arena = func(n int) []byte { return make([]byte, n) }
	}
}

// Begin lays a call out: which spans go to and come from each peer, and what this rank does for itself. The flows are Reset.
func (l *Layout) Begin(c *fabric.Call) {
	l.Now = c
	l.ownOut, l.ownIn, l.block, l.combined, l.overwrites = nil, nil, nil, 0, false
	h := &l.Header
	h.Class, h.Op, h.DType, h.Reduce, h.Hash = c.Class, c.Op, c.DType, c.Reduce, c.Hash
	if c.Op == fabric.Recv {
		h.Op = fabric.Send // what the frames of the other side say
	}
	if !c.Op.Reduces() {
		h.DType, h.Reduce = 0, 0
	}
	l.layOut(c)
}

// OnlyMoves says that the call is what its flows do, and nothing else: it is over when they are.
func (l *Layout) OnlyMoves() bool {
	return len(l.ownIn) == 0 && len(l.block) == 0 && l.Now.Op != fabric.AllGatherRows
}

// Advance does some of what this rank does itself: a wait is the time to do it in. bytes grow Progress; done says that nothing is
// left of it but Finish, once the flows have ended.
func (l *Layout) Advance() (bytes int, done bool) {
	if len(l.ownIn) > 0 {
		bytes = copy(l.ownOut, l.ownIn[:min(len(l.ownIn), copyGrain)])
		l.ownOut, l.ownIn = l.ownOut[bytes:], l.ownIn[bytes:]
	}
	l.combine()
	return bytes, len(l.ownIn) == 0 && l.combined == len(l.block)
}

// Finish is for a call whose flows have ended and which is done.
func (l *Layout) Finish() { l.scatterRows() }

// combine reduces, in rank order, what has arrived from every rank, and opens it for sending.
func (l *Layout) combine() {
	if l.combined == len(l.block) {
		return
	}
	ready := len(l.block)
	for r, f := range l.flows {
		if r == l.Rank {
			continue
		}
		ready = min(ready, f.contributed())
		if l.overwrites && !l.ends.SentForGood(r) {
			return
		}
	}
	if ready == l.combined {
		return
	}
	for r, in := range l.inputs {
		l.views[r] = in[l.combined:ready]
	}
	reduce.Combine(l.block[l.combined:ready], l.views, l.Now.DType, l.Now.Reduce)
	l.combined = ready
	for _, f := range l.flows {
		f.Open = ready
	}
}

// PutHeader writes the header of a part.
func (l *Layout) PutHeader(b *[frame.Size]byte, s *Span, part int, order uint32) {
	h := &l.Header
	h.Seq, h.Total, h.Rank, h.Step, h.Order = s.Seq, s.Total, s.Rank, s.Step, order
	h.Part, h.Payload = uint32(part), uint32(len(s.At(part)))
	h.Put(b)
}

// Expects says whether a header is that of a part of the call.
func (l *Layout) Expects(got *[frame.Size]byte, s *Span, part int, order uint32) bool {
	l.PutHeader(&l.expected, s, part, order)
	return frame.Equal(got, &l.expected)
}

// Mismatch says how what came from a peer differs from what this rank's call expects; s is nil when no call is in flight.
func (l *Layout) Mismatch(f *Flow, got *[frame.Size]byte, s *Span, order uint32) *fabric.Cause {
	h, err := frame.Parse(got)
	mine := l.Header
	switch {
	case err != nil:
		return PeerCause(f.Peer, 0, fmt.Sprintf("rank %d sent bytes that are no frame: %v", f.Peer, err), err)
	case h.Binding != mine.Binding:
		return PeerCause(f.Peer, h.Part, fmt.Sprintf("rank %d sent a frame of session %#x, not %#x", f.Peer, h.Binding, mine.Binding), nil)
	case s == nil || l.Now == nil:
		return PeerCause(f.Peer, h.Part, fmt.Sprintf("rank %d sent %s, which nothing here expects", f.Peer, h.Describe()), nil)
	}
	l.PutHeader(&l.expected, s, min(s.Ended, s.Parts-1), order)
	mine = l.Header
	mine.Op = l.Now.Op
	return &fabric.Cause{Kind: fabric.ErrDesync, Peer: f.Peer, From: -1, Part: h.Part,
		Text: fmt.Sprintf("rank %d is in %s; rank %d sent %s", l.Rank, mine.Describe(), f.Peer, h.Describe())}
}

// PeerCause is a peer that has failed.
func PeerCause(peer int, part uint32, text string, err error) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: peer, From: -1, Part: part, Text: text, Err: err}
}

// Corrupt is a frame whose bytes changed on the way.
func Corrupt(peer int, part uint32, what string) *fabric.Cause {
	return PeerCause(peer, part, fmt.Sprintf("CRC32C of a frame's %s from rank %d is wrong: the bytes changed on the way", what, peer), nil)
}

// TimedOut names the rank that holds the call up: the one that has brought least of what is due, and only when all of
// it is here one that takes nothing. active are the flows that have not ended.
func (l *Layout) TimedOut(idle time.Duration, active iter.Seq[*Flow]) *fabric.Cause {
	var slow *Flow
	for f := range active {
		if slow == nil || f.brought() < slow.brought() || f.brought() == slow.brought() && f.Peer < slow.Peer {
			slow = f
		}
	}
	if slow == nil {
		return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: -1, From: -1, Text: fmt.Sprintf("nothing moved for %v", idle)}
	}
	c := &fabric.Cause{Kind: fabric.ErrTimeout, Peer: slow.Peer, From: -1}
	if s := slow.Incoming(); s != nil {
		c.Part = uint32(s.Ended)
		c.Text = fmt.Sprintf("nothing moved for %v in %v; rank %d waits for rank %d, which has sent %d of %d bytes",
			idle, l.Now.Op, l.Rank, slow.Peer, slow.Arrived, slow.Due)
		return c
	}
	if s := slow.Outgoing(); s != nil {
		c.Part = uint32(s.Ended)
	}
	c.Text = fmt.Sprintf("nothing moved for %v in %v; rank %d waits for rank %d to take bytes, %d of %d sent",
		idle, l.Now.Op, l.Rank, slow.Peer, slow.Sent, slow.ToSend)
	if slow.OutLeft == 0 {
		c.Text = fmt.Sprintf("nothing moved for %v in %v; rank %d has sent all %d bytes and waits for rank %d to say that it has them",
			idle, l.Now.Op, l.Rank, slow.ToSend, slow.Peer)
	}
	if l.Now.Op == fabric.Send {
		c.Text += "; if both ranks are in Send, use SendRecv or Exchange"
	}
	return c
}
