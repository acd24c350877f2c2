package tcp

import (
	"errors"
	"fmt"
	"io"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

// span is a run of bytes that goes one way between this rank and a peer in one step of a call.
type span struct {
	buf   []byte
	seq   uint64
	total uint64 // as both ends compare it
	rank  uint16 // of the header
	step  frame.Step
	done  int    // bytes of finished frames
	part  uint32 // of the next frame
}

// next is the payload of the frame that continues s: all of a small span, a chunk of a larger one.
func (p *pending) next(s *span) []byte {
	if len(s.buf) <= p.t.c.EagerBytes {
		return s.buf
	}
	return s.buf[s.done:min(len(s.buf), s.done+p.t.c.ChunkBytes)]
}

// advance books a finished frame and says whether it was the span's last.
func (s *span) advance(n int) bool {
	s.done += n
	s.part++
	return s.done == len(s.buf)
}

// flow is what one call moves between this rank and one peer: at most two spans each way, in order.
type flow struct {
	peer   int
	conn   *link.Conn
	window int // bytes that sending may run ahead of receiving; 0 is no bound

	out, in     [2]span
	outs, ins   int  // spans in use
	outAt, inAt int  // spans finished
	open        int  // bytes of the second span out that exist by now
	checked     bool // the header of the frame being received

	sent, arrived int // payload bytes of finished frames
	toSend, due   int // payload bytes of the call
}

func (f *flow) reset() {
	f.outs, f.ins, f.outAt, f.inAt, f.open, f.sent, f.arrived, f.toSend, f.due = 0, 0, 0, 0, 0, 0, 0, 0, 0
}

func (f *flow) addOut(s span) { f.out[f.outs] = s; f.outs++; f.toSend += len(s.buf) }
func (f *flow) addIn(s span)  { f.in[f.ins] = s; f.ins++; f.due += len(s.buf) }

func (f *flow) finished() bool { return f.outAt == f.outs && f.inAt == f.ins }

// allowed is how many payload bytes may have been sent by now: the bound that keeps both directions of a pair moving
// together, off once nothing more is due.
func (f *flow) allowed() int {
	if f.window == 0 || f.toSend <= f.window {
		return f.toSend
	}
	arrived := f.arrived
	if f.conn.Receiving() {
		arrived += f.conn.PayloadReceived()
	}
	if arrived >= f.due {
		return f.toSend
	}
	return int(float64(arrived)*(float64(f.toSend)/float64(f.due))) + f.window
}

// brought is the share, 0 to 1, of what is due that has arrived; 2 when nothing more is.
func (f *flow) brought() float64 {
	if f.inAt == f.ins {
		return 2
	}
	return float64(f.arrived) / float64(max(f.due, 1))
}

// contributed is how many bytes of the first span in have arrived in finished frames.
func (f *flow) contributed() int { return f.in[0].done }

// send moves what the socket takes of the spans that exist by now.
func (p *pending) send(f *flow) error {
	c := f.conn
	for f.outAt < f.outs {
		s := &f.out[f.outAt]
		payload := p.next(s)
		if !c.Sending() {
			if f.outAt == 1 && s.done+len(payload) > f.open {
				return nil
			}
			p.putHeader(c.SendHeader(), s, len(payload))
			if p.t.c.Verify {
				frame.Seal(c.SendHeader(), payload)
			}
			c.Send(payload)
		}
		n, err := c.Flush(min(len(payload), max(f.allowed()-f.sent, 0)))
		if err != nil {
			return broken(f.peer, err)
		}
		p.moved += uint64(n)
		if c.Sending() {
			return nil
		}
		f.sent += len(payload)
		if s.advance(len(payload)) {
			f.outAt++
		}
	}
	return nil
}

// receive moves what the socket has, of the spans that are due, and looks at each header before it books a payload.
func (p *pending) receive(f *flow) error {
	c := f.conn
	for f.inAt < f.ins {
		s := &f.in[f.inAt]
		if !c.Receiving() {
			c.Receive(p.next(s))
			f.checked = false
		}
		n, err := c.Fill()
		if err != nil {
			return broken(f.peer, err)
		}
		if n == 0 {
			return nil
		}
		p.moved += uint64(n)
		if !f.checked && c.HeaderReady() {
			if err := p.checkHeader(f, s); err != nil {
				return err
			}
			f.checked = true
		}
		if c.Receiving() {
			return nil
		}
		payload := c.Deliver()
		if p.t.c.Verify && !frame.PayloadIntact(c.ReceivedHeader(), payload) {
			return corrupt(f.peer, s.part, "payload")
		}
		f.arrived += len(payload)
		if s.advance(len(payload)) {
			f.inAt++
		}
	}
	return nil
}

// putHeader writes the header of the frame that continues s.
func (p *pending) putHeader(b *[frame.Size]byte, s *span, payload int) {
	h := &p.t.header
	h.Seq, h.Total, h.Rank, h.Step, h.Part, h.Payload = s.seq, s.total, s.rank, s.step, s.part, uint32(payload)
	h.Put(b)
}

// checkHeader compares what came with what this rank's call expects. Nothing of the payload has been used yet.
func (p *pending) checkHeader(f *flow, s *span) error {
	got := f.conn.ReceivedHeader()
	if p.t.c.Verify && !frame.HeaderIntact(got) {
		return corrupt(f.peer, s.part, "header")
	}
	p.putHeader(&p.expected, s, len(p.next(s)))
	if frame.Equal(got, &p.expected) {
		return nil
	}
	h, err := frame.Parse(got)
	mine := p.t.header
	mine.Op = p.call.Op
	switch {
	case err != nil:
		return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: f.peer, From: -1, Part: s.part,
			Text: fmt.Sprintf("rank %d sent bytes that are no frame: %v", f.peer, err), Err: err}
	case h.Session != mine.Session || h.Group != mine.Group:
		return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: f.peer, From: -1, Part: s.part,
			Text: fmt.Sprintf("rank %d sent a frame of session %#x group %#x, not %#x %#x", f.peer, h.Session, h.Group, mine.Session, mine.Group)}
	}
	return &fabric.Cause{Kind: fabric.ErrDesync, Peer: f.peer, From: -1, Part: s.part,
		Text: fmt.Sprintf("rank %d is in %s; rank %d sent %s", p.t.rank, mine.Describe(), f.peer, h.Describe())}
}

func corrupt(peer int, part uint32, what string) error {
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: peer, From: -1, Part: part,
		Text: fmt.Sprintf("CRC32C of a frame's %s from rank %d is wrong: the bytes changed on the way", what, peer)}
}

func broken(peer int, err error) error {
	text := fmt.Sprintf("connection to rank %d: %v", peer, err)
	if errors.Is(err, io.EOF) {
		text = fmt.Sprintf("rank %d closed its connection", peer)
	}
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: peer, From: -1, Text: text, Err: err}
}
