package roce

import (
	"encoding/binary"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric/internal/flow"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// peer is the lasting side of a pair: its lanes. Flow is the call's.
type peer struct {
	flow.Flow
	c     *Config
	lanes []*lane
	near  *lane // the first that is no relay, which offers go by; nil where all are

	outOrder, inOrder uint32 // of the last call begun that sends to the peer, that receives from it
	to                [offers]grant
	ours              [offers]*memory // what this rank has offered, by step; nil: slots
	unsaid            int             // offers that have not been written, a bit a step
	taken             [offers]uint64  // offers of the peer's that were read, where completions tell of them
}

// grant is where a large span may be written.
type grant struct {
	known bool
	keys  [MaxStripes]uint32 // by lane; of slots: none
	at    uint64             // 0: the slots
}

// large says whether a span is offered a place: all of it but its first part may go there.
func (f *peer) large(s *flow.Span) bool { return f.near != nil && s.Parts > 1 }

// cut is alike at both ends, so that a part's number says where it belongs. A part fits a slot, also where it goes elsewhere: it may have to
// be staged.
func (f *peer) cut(s *flow.Span) {
	if s.Chunk, s.Parts = len(s.Buf), 1; len(s.Buf) > f.c.EagerBytes {
		s.Chunk = f.c.SlotBytes
		s.Parts = (len(s.Buf) + s.Chunk - 1) / s.Chunk
	}
}

func (f *peer) send(s flow.Span) {
	f.cut(&s)
	f.AddOut(s, false)
}

// receive takes a span in. Where it is large it is offered a place: its memory, where that is m, else the slots.
func (f *peer) receive(s flow.Span, m *memory) {
	f.cut(&s)
	if f.large(&s) {
		f.ours[s.Step] = m
		f.unsaid |= 1 << s.Step
	}
	f.AddIn(s, len(f.lanes) > 1)
}

// begin readies the peer for the next call.
func (f *peer) begin() {
	f.Reset()
	f.to, f.ours, f.unsaid = [offers]grant{}, [offers]*memory{}, 0
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

// finished says whether the call is over between the two.
func (f *peer) finished() bool {
	return f.OutLeft == 0 && f.InLeft == 0 && f.unsaid == 0 && f.returned()
}

// returned says whether no memory of the caller's is read any more.
func (f *peer) returned() bool {
	for _, l := range f.lanes {
		if !l.returned() {
			return false
		}
	}
	return true
}

// parted says whether the peer has said goodbye on every lane.
func (f *peer) parted() bool {
	for _, l := range f.lanes {
		if !l.parted {
			return false
		}
	}
	return true
}

// pick gives a lane that takes a frame: an idle one, else that with the least on its way; nil where none does.
func (f *peer) pick() (*lane, error) {
	var best *lane
	for _, l := range f.lanes {
		if l.sent != l.credit {
			if err := l.refresh(); err != nil {
				return nil, err
			}
		}
		if !l.open() {
			continue
		}
		if l.sent == l.credit {
			return l, nil
		}
		if best == nil || l.sent-l.credit < best.sent-best.credit {
			best = l
		}
	}
	return best, nil
}

// The offer of a place, behind the header of the span's first part: an address, then a key a lane. Address 0: the slots.
const (
	offerAddressAt = frame.Size
	offerKeysAt    = frame.Size + 8
)

// say writes the offers that are due.
func (f *peer) say(l *flow.Layout) error {
	for i := range f.Ins {
		s := &f.In[i]
		step := int(s.Step)
		if f.unsaid&(1<<step) == 0 {
			continue
		}
		e := f.near.hop
		if !e.room() {
			return nil
		}
		out := e.share.mem[offerOutAt(step):][:offerBytes]
		clear(out)
		l.PutHeader((*[frame.Size]byte)(out), s, 0, f.inOrder)
		if m := f.ours[step]; m != nil {
			binary.LittleEndian.PutUint64(out[offerAddressAt:], address(s.Buf))
			for k, lane := range f.lanes {
				binary.LittleEndian.PutUint32(out[offerKeysAt+4*k:], m.regions[lane.hca.index].RKey)
			}
		}
		if err := e.sendOffer(step, uint64(f.inOrder)); err != nil {
			return err
		}
		f.unsaid &^= 1 << step
	}
	return nil
}

// sendOffer posts the offer that was staged, and what tells of it.
func (e *hop) sendOffer(step int, order uint64) error {
	e.chain[0] = e.write(offerAt(step), [2]Piece{e.share.piece(offerOutAt(step), offerBytes)})
	if e.immediate {
		e.chain[0].Immediate, e.chain[0].Imm = true, immOffer|uint32(step)
		return e.post(1, false)
	}
	e.chain[1] = e.word(flagAt(step), order)
	return e.post(2, false)
}

// ask looks for the peer's offer for a large span out. It compares the calls before a byte is written.
func (f *peer) ask(l *flow.Layout, s *flow.Span) error {
	step, e := int(s.Step), f.near.hop
	if e.immediate {
		if e.offered[step] == f.taken[step] {
			return nil
		}
		f.taken[step]++
	} else if e.share.flag(step) != uint64(f.outOrder) {
		return nil
	}
	var got [offerBytes]byte
	copy(got[:], e.share.mem[offerAt(step):])
	g := grant{known: true, at: binary.LittleEndian.Uint64(got[offerAddressAt:])}
	for k := range f.lanes {
		g.keys[k] = binary.LittleEndian.Uint32(got[offerKeysAt+4*k:])
	}
	if g.at+uint64(len(s.Buf)) < g.at {
		return f.near.cause(fmt.Sprintf("rank %d offers %d bytes at %#x, which wrap around", f.Peer, len(s.Buf), g.at))
	}
	if h := (*[frame.Size]byte)(got[:]); !l.Expects(h, s, 0, f.outOrder) {
		return l.Mismatch(&f.Flow, h, s, f.outOrder)
	}
	f.to[step] = g
	return nil
}
