package tcp

import (
	"math"
	"math/bits"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// send moves what the sockets take of what exists by now: every idle lane takes the next part.
func (p *pending) send(f *peer, few bool) error {
	if f.outLeft == 0 && !f.wide {
		return nil
	}
	for _, l := range f.lanes {
		if l.conn == nil || !few && !l.conn.Writable {
			continue
		}
		if err := p.push(f, l); err != nil {
			if err := p.t.dropped(f, l, err); err != nil {
				return err
			}
			return p.send(f, few) // what the lane had is for the others
		}
	}
	return nil
}

// noLimit is for a frame that the window does not hold back.
const noLimit = math.MaxInt32 - frame.Size

// push moves what one lane takes.
func (p *pending) push(f *peer, l *lane) error {
	c := l.conn
	for c.Sending() || p.take(f, l) {
		limit := noLimit
		if s := l.sending.span; s != nil && f.window > 0 && !f.wide {
			limit = max(f.allowed(f.partial())-f.sent, 0)
		}
		n, err := c.Flush(limit)
		if err != nil {
			return err
		}
		p.moved += uint64(n)
		if c.Sending() {
			return nil
		}
		if s := l.sending.span; s != nil {
			f.sentPart(s, l.sending.part)
			if f.wide && s.large() {
				return nil // the other lanes' turn
			}
		}
	}
	return nil
}

func (f *flow) sentPart(s *span, part int) {
	f.sent += len(s.at(part))
	s.ended++
	f.outLeft--
}

// take gives an idle lane its next frame, and says whether there is one: first what the peer must hear before anything
// else on this lane, then what dead lanes had, then the next part of the call.
func (p *pending) take(f *peer, l *lane) bool {
	if f.wide && (l.announce != 0 || f.keptLost > 0 || f.ackNow || l.probe) {
		p.takeOwed(f, l)
		return true
	}
	if f.outLeft == 0 {
		return false
	}
	for i := range f.outs {
		if s := &f.out[i]; s.lost > 0 {
			part := s.nextLost()
			s.lost--
			p.start(f, l, s, part)
			return true
		}
	}
	for f.outAt < f.outs {
		s := &f.out[f.outAt]
		if s.begun == s.parts {
			f.outAt++
			continue
		}
		n := len(s.at(s.begun))
		if f.outAt == 1 && s.begun*s.chunk+n > f.open || f.wide && f.begun >= f.allowed(f.partial()) && n > 0 {
			return false
		}
		if f.wide && s.large() && f.leaves(l, n) {
			return false
		}
		f.begun += n
		s.begun++
		p.start(f, l, s, s.begun-1)
		return true
	}
	return false
}

// start begins to send a part of the call.
func (p *pending) start(f *peer, l *lane, s *span, part int) {
	payload := s.at(part)
	h := l.conn.SendHeader()
	p.putHeader(h, s, part, f.outOrder)
	l.sending = sending{span: s, part: part}
	if f.wide {
		s.marks[part] = uint8(l.index + 1)
		frame.SetAck(h, f.have)
		f.told = f.have
		if !s.large() {
			l.sending.kept = true
			f.keep(l, payload)
		}
	}
	if p.t.c.Verify {
		frame.Seal(h, payload)
	}
	l.conn.Send(payload)
}

// takeOwed begins to send what the peer is owed beside the call.
func (p *pending) takeOwed(f *peer, l *lane) {
	l.sending = sending{}
	var payload []byte
	h := l.conn.SendHeader()
	n := frame.Header{Binding: p.t.header.Binding, Kind: frame.Ack, Rank: frame.NoRank, Verify: p.t.c.Verify, Ack: f.have}
	switch {
	case l.announce != 0:
		dead := bits.TrailingZeros64(l.announce)
		l.announce &^= 1 << dead
		n.Kind, n.Part, n.Seq = frame.Down, uint32(dead), uint64(f.lanes[dead].died)
		n.Put(h)
	case f.keptLost > 0:
		k := f.nextKeptLost()
		k.lane = uint8(l.index + 1)
		f.keptLost--
		*h, payload = k.header, k.payload
		frame.SetAck(h, f.have)
	default:
		n.Put(h)
		f.ackNow, l.probe = false, false
	}
	f.told = f.have
	if p.t.c.Verify {
		frame.Seal(h, payload)
	}
	l.conn.Send(payload)
}

func (f *peer) nextKeptLost() *kept {
	for i := range f.kept {
		if f.kept[i].lane == 0 {
			return &f.kept[i]
		}
	}
	return nil
}

// putHeader writes the header of a part.
func (p *pending) putHeader(b *[frame.Size]byte, s *span, part int, order uint32) {
	h := &p.t.header
	h.Seq, h.Total, h.Rank, h.Step, h.Order = s.seq, s.total, s.rank, s.step, order
	h.Part, h.Payload = uint32(part), uint32(len(s.at(part)))
	h.Put(b)
}

// orderCall numbers the call for both directions.
func (f *peer) orderCall() {
	if f.outs > 0 {
		f.outOrder++
	}
	if f.ins > 0 {
		f.inOrder++
	}
}

func (t *Transport) peerCause(f *peer, part uint32, text string, err error) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: f.rank, From: -1, Part: part, Text: text, Err: err}
}
