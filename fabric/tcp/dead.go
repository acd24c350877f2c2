package tcp

import (
	"errors"
	"fmt"
	"io"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// dropped decides what the failure of a lane means: nothing more than that while the pair has another one.
func (t *Transport) dropped(f *peer, l *lane, err error) error {
	var cause *fabric.Cause
	if errors.As(err, &cause) {
		return err
	}
	if !f.wide {
		return broken(f, err)
	}
	return t.bury(f, l, err)
}

// bury closes a lane and gives what was on its way there to the others. It gives the cause that ends the call when there
// are none.
func (t *Transport) bury(f *peer, l *lane, why error) error {
	l.rail.closed(l.conn)
	mine := uint8(l.index + 1)
	if int32(f.outOrder-f.acked) > 0 {
		for i := range f.Outs {
			if s := &f.Out[i]; large(s) {
				f.lose(s, l)
			}
		}
	}
	if s := l.sending.span; l.conn.Sending() && s != nil && (l.sending.kept || f.acked == f.outOrder) {
		f.SentPart(s, l.sending.part) // its copy goes again, or the peer has it
	}
	if e := l.arriving.early; e != nil && l.conn.Placed() {
		f.asideBytes -= len(e.payload) + frame.Size // it will come again
	}
	for i := range f.kept {
		if f.kept[i].lane == mine {
			f.kept[i].lane = 0
			f.keptLost++
		}
	}
	t.group.Drop(l.conn)
	l.conn, l.why, l.held, l.probe, l.died = nil, why, false, false, l.generation
	f.up--
	f.ackNow = true
	for _, other := range f.lanes {
		if other.conn != nil {
			other.announce |= 1 << l.index
			other.held = false // what it holds must be put aside: what this one lost may come behind it
			other.conn.Readable = true
		}
	}
	t.lost(f, l)
	if f.up == 0 {
		return t.noLane(f)
	}
	return nil
}

// noLane is the cause when a pair has no lane left.
func (t *Transport) noLane(f *peer) error {
	return flow.PeerCause(f.Peer, 0, fmt.Sprintf("no connection to rank %d is left: %s", f.Peer, f.describeRails()), nil)
}

// lose marks the parts that a dead lane had taken as not sent.
func (f *peer) lose(s *flow.Span, l *lane) {
	under := -1
	if l.conn.Sending() && l.sending.span == s {
		under = l.sending.part
	}
	for part, lane := range s.Marks[:s.Begun] {
		if lane != uint8(l.index+1) {
			continue
		}
		s.Marks[part] = 0
		s.Lost++
		if part != under {
			s.Ended--
			f.OutLeft++
			f.Sent -= len(s.At(part))
		}
	}
}

// laneDown takes a peer's word that a lane is dead: what this rank sent on it, and the peer does not have, goes again.
// The peer sends again what it had sent there, behind this notice.
func (p *pending) laneDown(f *peer, l *lane, h *frame.Header) error {
	if int(h.Part) >= len(f.lanes) || int(h.Part) == l.index || h.Seq > maxGeneration {
		return flow.PeerCause(f.Peer, 0, fmt.Sprintf("rank %d says that lane %d of generation %d is dead; there are %d, and it said so on lane %d",
			f.Peer, h.Part, h.Seq, len(f.lanes), l.index), nil)
	}
	dead, generation := f.lanes[h.Part], int(h.Seq)
	if generation < dead.generation {
		return nil
	}
	if dead.conn != nil {
		if err := p.t.bury(f, dead, fmt.Errorf("rank %d lost it", f.Peer)); err != nil {
			return err
		}
	}
	// The peer may have had a later one that never came to life here.
	dead.generation, dead.died = generation, generation
	p.t.requestMend()
	return nil
}

func broken(f *peer, err error) error {
	text := fmt.Sprintf("connection to rank %d: %v", f.Peer, err)
	if errors.Is(err, io.EOF) {
		text = fmt.Sprintf("rank %d closed its connection", f.Peer)
	}
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: f.Peer, From: -1, Text: text, Err: err}
}
