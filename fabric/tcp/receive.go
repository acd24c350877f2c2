package tcp

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric/internal/flow"
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
	for turn := 0; turn < framesPerTurn && l.conn != nil && !l.held && (f.wide || f.InLeft > 0); {
		if !c.Receiving() {
			var direct []byte
			if s := f.Incoming(); !f.wide {
				direct = s.At(s.Ended)
			}
			c.Expect(f.Ahead, direct)
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
		if s := l.arriving.span; f.wide && s != nil && large(s) {
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
		return flow.Corrupt(f.Peer, part, "header")
	}
	if f.wide {
		if kind != frame.Data || order != f.inOrder || f.InLeft == 0 {
			return p.admitOther(f, l, got, order, int(n))
		}
		if err := f.heard(frame.AckOf(got)); err != nil {
			return err
		}
	}
	s := f.SpanOf(step, part)
	if s == nil || !f.wide && (s != f.Incoming() || int(part) != s.Ended) {
		return p.layout.Mismatch(&f.Flow, got, f.Incoming(), f.inOrder)
	}
	if !p.layout.Expects(got, s, int(part), f.inOrder) {
		return p.layout.Mismatch(&f.Flow, got, s, f.inOrder)
	}
	if f.wide && s.Marks[part] != 0 {
		l.conn.Skip(int(n)) // it came before its lane died
		return nil
	}
	l.arriving = arriving{span: s, part: int(part)}
	l.conn.Place(s.At(int(part)))
	return nil
}

// admitOther takes what is of no call in flight: notices, what comes a second time, and what comes early.
func (p *pending) admitOther(f *peer, l *lane, got *[frame.Size]byte, order uint32, n int) error {
	h, err := frame.Parse(got)
	if err != nil || h.Binding != p.layout.Header.Binding {
		return p.layout.Mismatch(&f.Flow, got, nil, f.inOrder)
	}
	if err := f.heard(h.Ack); err != nil {
		return err
	}
	ahead := int32(order - f.have)
	if n > p.t.c.largest() {
		return flow.PeerCause(f.Peer, h.Part, fmt.Sprintf("rank %d sent a frame of %d bytes; %d are the most", f.Peer, n, p.t.c.largest()), nil)
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
			return flow.Corrupt(f.Peer, 0, "payload")
		}
		f.aside = append(f.aside, a.early)
		if _, order, _, _, _ := frame.Peek(&a.early.header); int32(order-f.inOrder) <= 0 {
			return p.recall(f) // its call has begun while it came
		}
	case a.span != nil && f.wide && a.span.Marks[a.part] != 0:
		// It came by another lane meanwhile.
	case a.span != nil:
		payload := a.span.At(a.part)
		if p.t.c.Verify && !frame.PayloadIntact(l.conn.ReceivedHeader(), payload) {
			return flow.Corrupt(f.Peer, uint32(a.part), "payload")
		}
		p.came(f, a.span, a.part)
	}
	return nil
}

func (p *pending) came(f *peer, s *flow.Span, part int) {
	if f.Came(s, part) {
		f.receivedAll()
	}
}

// recall gives the call what came for it before it began.
func (p *pending) recall(f *peer) error {
	left := f.aside[:0]
	var failed error
	for _, e := range f.aside {
		_, order, step, part, _ := frame.Peek(&e.header)
		s := f.SpanOf(step, part)
		switch {
		case failed != nil || int32(order-f.inOrder) > 0:
			left = append(left, e)
			continue
		case order == f.inOrder && f.InLeft > 0:
			if s == nil {
				failed = p.layout.Mismatch(&f.Flow, &e.header, f.Incoming(), f.inOrder)
				break
			}
			if !p.layout.Expects(&e.header, s, int(part), f.inOrder) {
				failed = p.layout.Mismatch(&f.Flow, &e.header, s, f.inOrder)
				break
			}
			if s.Marks[part] == 0 {
				p.moved += uint64(copy(s.At(int(part)), e.payload))
				p.came(f, s, int(part))
			}
		}
		f.asideBytes -= len(e.payload) + frame.Size
	}
	clear(f.aside[len(left):])
	f.aside = left
	return failed
}
