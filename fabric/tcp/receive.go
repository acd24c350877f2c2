package tcp

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// receive moves what the sockets have, and looks at each header before it books a payload.
func (p *pending) receive(f *peer, few bool) error {
	for _, l := range f.lanes {
		if l.conn == nil || l.held || !few && !l.conn.Readable {
			continue
		}
		if err := p.pull(f, l); err != nil {
			if err := p.t.dropped(f, l, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// framesPerTurn bounds what one lane delivers before anything else is looked at.
const framesPerTurn = 64

// pull moves what one lane has.
func (p *pending) pull(f *peer, l *lane) error {
	c := l.conn
	for turn := 0; turn < framesPerTurn && l.conn != nil && !l.held && (f.wide || f.inLeft > 0); {
		if !c.Receiving() {
			var direct []byte
			if s := f.incoming(); !f.wide {
				direct = s.at(s.ended)
			}
			c.Expect(f.ahead, direct)
		}
		if !c.HeaderReady() || c.Placed() && !c.Complete() {
			n, err := c.Fill()
			if err != nil {
				return err
			}
			if n == 0 {
				return nil
			}
			p.moved += uint64(n)
			if !c.HeaderReady() {
				continue
			}
		}
		if !c.Placed() {
			if err := p.admit(f, l); err != nil {
				return err
			}
		}
		if l.conn == nil || l.held || !c.Complete() {
			continue
		}
		if err := p.book(f, l); err != nil {
			return err
		}
		c.Done()
		turn++
		if s := l.arriving.span; f.wide && s != nil && s.large() {
			return nil // the other lanes' turn
		}
	}
	return nil
}

// admit looks at a header and says where its payload goes. Nothing of it has been used yet.
func (p *pending) admit(f *peer, l *lane) error {
	got := l.conn.ReceivedHeader()
	l.arriving = arriving{}
	kind, order, step, part, n := frame.Peek(got)
	if p.t.c.Verify && !frame.HeaderIntact(got) {
		return p.corrupt(f, part, "header")
	}
	if f.wide {
		if kind != frame.Data || order != f.inOrder || f.inLeft == 0 {
			return p.admitOther(f, l, got, order, int(n))
		}
		if err := f.heard(frame.AckOf(got)); err != nil {
			return err
		}
	}
	s := f.spanOf(step, part)
	if s == nil || !f.wide && (s != f.incoming() || int(part) != s.ended) {
		return p.mismatch(f, got, f.incoming())
	}
	p.putHeader(&p.expected, s, int(part), f.inOrder)
	if !frame.Equal(got, &p.expected) {
		return p.mismatch(f, got, s)
	}
	if f.wide && s.marks[part] != 0 {
		l.conn.Skip(int(n)) // it came before its lane died
		return nil
	}
	l.arriving = arriving{span: s, part: int(part)}
	l.conn.Place(s.at(int(part)))
	return nil
}

// spanOf is the span in that a part of a step belongs to, if the call has it.
func (f *flow) spanOf(step frame.Step, part uint32) *span {
	for i := range f.ins {
		if s := &f.in[i]; s.step == step && int(part) < s.parts {
			return s
		}
	}
	return nil
}

// admitOther takes what is of no call in flight: notices, what comes a second time, and what comes early.
func (p *pending) admitOther(f *peer, l *lane, got *[frame.Size]byte, order uint32, n int) error {
	h, err := frame.Parse(got)
	if err != nil || h.Binding != p.t.header.Binding {
		return p.mismatch(f, got, nil)
	}
	if err := f.heard(h.Ack); err != nil {
		return err
	}
	ahead := int32(order - f.have)
	if n > p.t.c.largest() {
		return p.t.peerCause(f, h.Part, fmt.Sprintf("rank %d sent a frame of %d bytes; %d are the most", f.rank, n, p.t.c.largest()), nil)
	}
	switch {
	case h.Kind == frame.Down:
		l.conn.Place(nil)
		return p.laneDown(f, l, &h)
	case h.Kind == frame.Ack:
		l.conn.Place(nil)
	case ahead <= 0:
		l.conn.Skip(n)
		f.ackNow = true // its sender does not know that it is here
	case f.up == len(f.lanes) && (n > keepMost || len(f.aside) >= maxEarly), f.asideBytes+n+frame.Size > maxEarlyBytes:
		l.held = true // until its call comes, or a lane dies and what that one lost may stand behind it
		l.conn.Pause()
	default:
		l.arriving.early = &early{header: *got, payload: make([]byte, n)}
		f.asideBytes += n + frame.Size
		l.conn.Place(l.arriving.early.payload)
	}
	return nil
}

// book takes a whole frame.
func (p *pending) book(f *peer, l *lane) error {
	a := &l.arriving
	switch {
	case a.early != nil:
		if p.t.c.Verify && !frame.PayloadIntact(&a.early.header, a.early.payload) {
			return p.corrupt(f, 0, "payload")
		}
		f.aside = append(f.aside, a.early)
		if _, order, _, _, _ := frame.Peek(&a.early.header); int32(order-f.inOrder) <= 0 {
			return p.recall(f) // its call has begun while it came
		}
	case a.span != nil && f.wide && a.span.marks[a.part] != 0:
		// It came by another lane meanwhile.
	case a.span != nil:
		payload := a.span.at(a.part)
		if p.t.c.Verify && !frame.PayloadIntact(l.conn.ReceivedHeader(), payload) {
			return p.corrupt(f, uint32(a.part), "payload")
		}
		p.came(f, a.span, a.part)
	}
	return nil
}

func (p *pending) came(f *peer, s *span, part int) {
	f.arrived += len(s.at(part))
	s.came(part)
	if f.inLeft--; f.inLeft == 0 {
		f.receivedAll()
	}
}

// recall gives the call what came for it before it began.
func (p *pending) recall(f *peer) error {
	left := f.aside[:0]
	var failed error
	for _, e := range f.aside {
		_, order, step, part, _ := frame.Peek(&e.header)
		s := f.spanOf(step, part)
		switch {
		case failed != nil || int32(order-f.inOrder) > 0:
			left = append(left, e)
			continue
		case order == f.inOrder && f.inLeft > 0:
			if s == nil {
				failed = p.mismatch(f, &e.header, f.incoming())
				break
			}
			p.putHeader(&p.expected, s, int(part), f.inOrder)
			if !frame.Equal(&e.header, &p.expected) {
				failed = p.mismatch(f, &e.header, s)
				break
			}
			if s.marks[part] == 0 {
				p.moved += uint64(copy(s.at(int(part)), e.payload))
				p.came(f, s, int(part))
			}
		}
		f.asideBytes -= len(e.payload) + frame.Size
	}
	clear(f.aside[len(left):])
	f.aside = left
	return failed
}

// mismatch says how what came differs from what this rank's call expects; s is nil when no call is in flight.
func (p *pending) mismatch(f *peer, got *[frame.Size]byte, s *span) error {
	h, err := frame.Parse(got)
	mine := p.t.header
	switch {
	case err != nil:
		return p.t.peerCause(f, 0, fmt.Sprintf("rank %d sent bytes that are no frame: %v", f.rank, err), err)
	case h.Binding != mine.Binding:
		return p.t.peerCause(f, h.Part, fmt.Sprintf("rank %d sent a frame of session %#x, not %#x", f.rank, h.Binding, mine.Binding), nil)
	case s == nil || p.call == nil:
		return p.t.peerCause(f, h.Part, fmt.Sprintf("rank %d sent %s, which nothing here expects", f.rank, h.Describe()), nil)
	}
	p.putHeader(&p.expected, s, min(s.ended, s.parts-1), f.inOrder)
	mine = p.t.header
	mine.Op = p.call.Op
	return &fabric.Cause{Kind: fabric.ErrDesync, Peer: f.rank, From: -1, Part: h.Part,
		Text: fmt.Sprintf("rank %d is in %s; rank %d sent %s", p.t.rank, mine.Describe(), f.rank, h.Describe())}
}

func (p *pending) corrupt(f *peer, part uint32, what string) error {
	return p.t.peerCause(f, part, fmt.Sprintf("CRC32C of a frame's %s from rank %d is wrong: the bytes changed on the way", what, f.rank), nil)
}
