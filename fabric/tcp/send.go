package tcp

import (
	"math"
	"math/bits"

	"github.com/hipfabric/hipfabric/fabric/internal/flow"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// send moves what the sockets take of what exists by now: every idle lane takes the next part.
func (p *pending) send(f *peer, few bool) error {
	if f.OutLeft == 0 && !f.wide {
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
		if s := l.sending.span; s != nil && f.Window > 0 && !f.wide {
			limit = max(f.Allowed(f.partial())-f.Sent, 0)
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
			f.SentPart(s, l.sending.part)
			if f.wide && large(s) {
				return nil // the other lanes' turn
			}
		}
	}
	return nil
}

// take gives an idle lane its next frame, and says whether there is one: first what the peer must hear before anything
// else on this lane, then what dead lanes had, then the next part of the call.
func (p *pending) take(f *peer, l *lane) bool {
	if f.wide && (l.announce != 0 || f.keptLost > 0 || f.ackNow || l.probe) {
		p.takeOwed(f, l)
		return true
	}
	if f.OutLeft == 0 {
		return false
	}
	for i := range f.Outs {
		if s := &f.Out[i]; s.Lost > 0 {
			part := s.NextLost()
			s.Lost--
			p.start(f, l, s, part)
			return true
		}
	}
	for f.OutAt < f.Outs {
		s := &f.Out[f.OutAt]
		if s.Begun == s.Parts {
			f.OutAt++
			continue
		}
		n := len(s.At(s.Begun))
		if f.OutAt == 1 && s.Begun*s.Chunk+n > f.Open || f.wide && f.Begun >= f.Allowed(f.partial()) && n > 0 {
			return false
		}
		if f.wide && large(s) && f.leaves(l, n) {
			return false
		}
		f.Begun += n
		s.Begun++
		p.start(f, l, s, s.Begun-1)
		return true
	}
	return false
}

// start begins to send a part of the call.
func (p *pending) start(f *peer, l *lane, s *flow.Span, part int) {
	payload := s.At(part)
	h := l.conn.SendHeader()
	p.layout.PutHeader(h, s, part, f.outOrder)
	l.sending = sending{span: s, part: part}
	if f.wide {
		s.Marks[part] = uint8(l.index + 1)
		frame.SetAck(h, f.have)
		f.told = f.have
		if !large(s) {
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
	n := frame.Header{Binding: p.layout.Header.Binding, Kind: frame.Ack, Rank: frame.NoRank, Verify: p.t.c.Verify, Ack: f.have}
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

// orderCall numbers the call for both directions.
func (f *peer) orderCall() {
	if f.Outs > 0 {
		f.outOrder++
	}
	if f.Ins > 0 {
		f.inOrder++
	}
}
