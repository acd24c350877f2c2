package roce

import (
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// pending is the call in flight. It is reused: a Transport has one.
type pending struct {
	t      *Transport
	laid   []*peer // with something to send or to receive
	active []*peer // of them, unfinished
	moved  uint64  // bytes, both ways
	moves  bool    // the call is what the flows do, and nothing else
	rounds uint    // since the completions were looked at
}

// begin lays a call out over the peers, and offers places for what is large.
func (p *pending) begin(c *fabric.Call) {
	p.moved, p.active = 0, p.active[:0]
	for _, f := range p.laid {
		f.begin()
	}
	p.laid = p.laid[:0]
	p.t.layout.Begin(c)
	p.moves = p.t.layout.OnlyMoves()
	for _, f := range p.laid {
		f.orderCall()
		p.active = append(p.active, f)
	}
}

// ends are the peers, as the layout fills them.
type ends pending

func (e *ends) peer(r int) *peer {
	f := &e.t.peers[r]
	if f.Outs+f.Ins == 0 {
		e.laid = append(e.laid, f)
	}
	return f
}

func (e *ends) Send(r int, s flow.Span)    { e.peer(r).send(s) }
func (e *ends) Receive(r int, s flow.Span) { e.peer(r).receive(s, e.t.memory.find(s.Buf)) }
func (e *ends) SentForGood(r int) bool {
	f := &e.t.peers[r]
	return f.Out[0].Finished() && f.returned()
}

// step tries once everything that can make progress.
func (p *pending) step() (done bool, err error) {
	if p.rounds++; p.t.told || p.rounds%completionsEvery == 0 {
		if err := p.t.completions(); err != nil {
			return true, err
		}
	}
	for i := 0; i < len(p.active); {
		f := p.active[i]
		if f.unsaid != 0 {
			if err := f.say(&p.t.layout); err != nil {
				return true, err
			}
		}
		if f.OutLeft > 0 {
			if err := p.send(f); err != nil {
				return true, err
			}
		}
		if f.InLeft > 0 {
			if err := p.receive(f); err != nil {
				return true, err
			}
		}
		if f.OutLeft == 0 && f.InLeft == 0 && !f.returned() {
			p.rounds |= completionsEvery - 1
		}
		if f.finished() {
			last := len(p.active) - 1
			p.active[i], p.active = p.active[last], p.active[:last]
			continue
		}
		i++
	}
	if p.moves {
		return len(p.active) == 0, nil
	}
	bytes, done := p.t.layout.Advance()
	p.moved += uint64(bytes)
	if len(p.active) > 0 || !done {
		return false, nil
	}
	p.t.layout.Finish()
	return true, nil
}

// completionsEvery is after how many rounds completions are looked at where nothing waits for one.
const completionsEvery = 64

// send posts what has room of what exists by now.
func (p *pending) send(f *peer) error {
	for f.OutAt < f.Outs {
		s := &f.Out[f.OutAt]
		if s.Begun == s.Parts {
			f.OutAt++
			continue
		}
		if s.Begun > 0 && f.large(s) && !f.to[s.Step].known {
			if err := f.ask(&p.t.layout, s); err != nil || !f.to[s.Step].known {
				return err
			}
		}
		n := len(s.At(s.Begun))
		if f.OutAt == 1 && s.Begun*s.Chunk+n > f.Open {
			return nil
		}
		l, err := f.pick()
		if err != nil {
			return err
		}
		if l == nil {
			p.rounds |= completionsEvery - 1 // the queue may be full of what is complete
			return nil
		}
		if err := p.post(f, l, s, s.Begun); err != nil {
			return err
		}
		s.Begun++
		f.SentPart(s, s.Begun-1)
		p.moved += uint64(n) + frame.Size
	}
	return nil
}

// post sends a part: in a slot, or into the peer's memory with a frame behind it that says so. The first part waits for no offer, so that a
// peer in another call learns of this one; it goes in a slot. What lies in memory of ours goes from there,
// the rest is staged.
func (p *pending) post(f *peer, l *lane, s *flow.Span, part int) error {
	payload := s.At(part)
	h, room := l.stage()
	p.t.layout.PutHeader(h, s, part, f.outOrder)
	l.acknowledge(h)
	if p.t.c.Verify {
		frame.Seal(h, payload)
	}
	l.count.sent(len(payload))
	if !f.large(s) {
		return l.send(copy(room, payload), Piece{}, 0, false)
	}
	m, staged := p.t.memory.find(payload), 0
	from, lent := Piece{}, m != nil
	if lent {
		from = m.piece(payload, l.hca)
	} else {
		staged = copy(room, payload)
	}
	g := &f.to[s.Step]
	if part == 0 || g.at == 0 {
		return l.send(staged, from, 0, lent)
	}
	if !lent {
		from = l.staged(staged)
	}
	l.chain[0] = Work{Pieces: [2]Piece{from}, Remote: g.at + uint64(part*s.Chunk), RKey: g.keys[l.index]}
	return l.send(0, Piece{}, 1, lent)
}

// receive takes what has come from a peer, as far as it is of this call.
func (p *pending) receive(f *peer) error {
	for _, l := range f.lanes {
		for {
			payload, there, err := l.arrival()
			if err != nil {
				return err
			}
			if !there {
				break
			}
			mine, err := p.admit(f, l, payload)
			if err != nil {
				return err
			}
			if !mine {
				break // it is of a later call
			}
			if err := l.took(); err != nil {
				return err
			}
		}
		if err := l.tell(); err != nil {
			return err
		}
	}
	if f.InLeft > 0 && f.parted() {
		return flow.PeerCause(f.Peer, 0, fmt.Sprintf("rank %d has closed its part of the group", f.Peer), nil)
	}
	return nil
}

// admit takes a frame. Nothing of it is used before its header is what this call expects.
func (p *pending) admit(f *peer, l *lane, payload []byte) (mine bool, err error) {
	got := &l.header
	kind, order, step, part, _ := frame.Peek(got)
	if kind == frame.Down && p.t.isBye(got) {
		l.parted = true
		return false, nil
	}
	if p.t.c.Verify && !frame.HeaderIntact(got) {
		return false, flow.Corrupt(f.Peer, part, "header")
	}
	if kind == frame.Data && (int32(order-f.inOrder) > 0 || f.InLeft == 0) {
		return false, nil
	}
	s := f.SpanOf(step, part)
	if s == nil || kind != frame.Data || !p.t.layout.Expects(got, s, int(part), f.inOrder) || !s.Due(int(part)) {
		return false, p.t.layout.Mismatch(&f.Flow, got, f.Incoming(), f.inOrder)
	}
	if err := l.heard(frame.AckOf(got)); err != nil {
		return false, err
	}
	to := s.At(int(part))
	if part == 0 || f.ours[s.Step] == nil {
		copy(to, payload)
	}
	if p.t.c.Verify && !frame.PayloadIntact(got, to) {
		return false, flow.Corrupt(f.Peer, part, "payload")
	}
	l.count.received(len(to))
	p.moved += uint64(len(to)) + frame.Size
	f.Came(s, int(part))
	return true, nil
}

// Poll makes progress without blocking.
func (p *pending) Poll() (bool, error) {
	if err := p.t.enter(); err != nil {
		return true, err
	}
	defer p.t.leave()
	before := p.moved
	done, err := p.step()
	if p.moved != before {
		p.t.waiting.Store(0)
	}
	return done, p.t.ended(err)
}

// Progress grows as bytes move.
func (p *pending) Progress() uint64 { return p.moved }

// Stall publishes whom the call waits for, until something moves.
func (p *pending) Stall(idle time.Duration) error {
	if err := p.t.enter(); err != nil {
		return err
	}
	defer p.t.leave()
	p.stalled()
	return p.timedOut(idle)
}

func (p *pending) stalled() {
	set := uint64(0)
	for _, f := range p.active {
		set |= 1 << f.Peer
	}
	p.t.waiting.Store(set)
}

// timedOut names the rank that holds the call up, and what its lanes wait for.
func (p *pending) timedOut(idle time.Duration) error {
	c := p.t.layout.TimedOut(idle, func(yield func(*flow.Flow) bool) {
		for _, f := range p.active {
			if !yield(&f.Flow) {
				return
			}
		}
	})
	if c.Peer >= 0 {
		for _, l := range p.t.peers[c.Peer].lanes {
			c.Text += fmt.Sprintf("; %s: frame %d is next, %d of %d sent are taken", l.name, l.head+1, l.credit, l.sent)
		}
	}
	return c
}
