package tcp

import (
	"fmt"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
)

const (
	// keepMost is the payload up to which a frame is copied, to be sent again should its lane die. The end of a call
	// with a larger one waits for its acknowledgement instead.
	keepMost = 64 << 10
	// maxKept and maxKeptBytes bound the copies of a peer's frames: a call ends only within them.
	maxKept      = 64
	maxKeptBytes = 1 << 20
	// ackEvery is after how many calls a receiver that sends nothing acknowledges them.
	ackEvery = 16
	// maxEarly bounds the frames put aside while all lanes live, which a peer that keeps its own bounds never reaches, and
	// maxEarlyBytes, headers counted, those put aside in all.
	maxEarly      = 2 * maxKept
	maxEarlyBytes = 256 << 20
)

// peer is the lasting side of a pair: its lanes, and what one end still owes the other. Flow is the call's.
type peer struct {
	flow.Flow
	c     *Config
	rails []*rail
	lanes []*lane
	up    int  // lanes that are not down
	wide  bool // the pair has several lanes: what was sent can be sent again

	outOrder, inOrder uint32 // of the last call begun that sends to the peer, that receives from it
	have              uint32 // all calls from the peer up to this order are here
	acked             uint32 // the peer has all calls up to this order
	told              uint32 // the peer was told of have up to here
	ackNow            bool   // it must be told again
	needsAck          bool   // the call sends what no copy was made of
	owesAck           bool   // the call receives such

	pacedAt time.Time // when the lanes' pace was last looked at

	kept      []kept
	keptBytes int
	keptLost  int // of them, on dead lanes
	spare     [][]byte

	aside      []*early // of later calls
	asideBytes int
}

// large says whether a span is not copied.
func large(s *flow.Span) bool { return s.Parts > 1 || len(s.Buf) > keepMost }

func (f *peer) send(s flow.Span) {
	s.Chunk, s.Parts = f.c.cut(len(s.Buf), len(f.lanes))
	f.AddOut(s, f.wide)
	f.needsAck = f.needsAck || large(&s)
}

func (f *peer) receive(s flow.Span) {
	s.Chunk, s.Parts = f.c.cut(len(s.Buf), len(f.lanes))
	f.AddIn(s, f.wide)
	f.owesAck = f.owesAck || large(&s)
}

// begin readies the peer for the next call.
func (f *peer) begin() {
	f.Reset()
	f.needsAck, f.owesAck = false, false
}

// finished says whether the call is over between the two: all is here, and what was sent is with the peer or copied.
func (f *peer) finished() bool {
	return f.OutLeft == 0 && f.InLeft == 0 && (!f.wide || f.settled())
}

func (f *peer) settled() bool {
	if f.ackNow || f.keptLost > 0 || len(f.kept) > maxKept || f.keptBytes > maxKeptBytes || f.needsAck && f.acked != f.outOrder {
		return false
	}
	for _, l := range f.lanes {
		if l.conn != nil && (l.announce != 0 || l.conn.Sending()) {
			return false
		}
	}
	return true
}

// sentForGood says whether the first span out may be overwritten.
func (f *peer) sentForGood() bool {
	s := &f.Out[0]
	return s.Finished() && (!f.wide || !large(s) || f.acked == f.outOrder)
}

// heard takes an acknowledgement.
func (f *peer) heard(ack uint32) error {
	switch {
	case int32(ack-f.acked) <= 0:
		return nil
	case int32(ack-f.outOrder) > 0:
		return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: f.Peer, From: -1,
			Text: fmt.Sprintf("rank %d acknowledges call %d, and was sent %d", f.Peer, ack, f.outOrder)}
	}
	f.acked = ack
	if ack == f.outOrder {
		f.forgetLost()
	}
	n := 0
	for n < len(f.kept) && int32(f.kept[n].order-ack) <= 0 {
		k := &f.kept[n]
		if k.lane == 0 {
			f.keptLost--
		}
		f.keptBytes -= len(k.payload)
		f.spare = append(f.spare, k.payload)
		n++
	}
	f.kept = f.kept[:copy(f.kept, f.kept[n:])]
	return nil
}

// forgetLost is for when the peer has all of the call, what dead lanes had taken included.
func (f *peer) forgetLost() {
	for i := range f.Outs {
		for s := &f.Out[i]; s.Lost > 0; s.Lost-- {
			part := s.NextLost()
			s.Marks[part] = arrived
			f.SentPart(s, part)
		}
	}
}

// arrived marks a part that no lane need carry any more.
const arrived = 0xff

// holds says whether a lane's next frame waits for a later call.
func (f *peer) holds() bool {
	for _, l := range f.lanes {
		if l.held {
			return true
		}
	}
	return false
}

// keep copies a frame that is about to be sent.
func (f *peer) keep(l *lane, payload []byte) {
	var b []byte
	if n := len(f.spare); n > 0 {
		b, f.spare = f.spare[n-1], f.spare[:n-1]
	}
	f.kept = append(f.kept, kept{header: *l.conn.SendHeader(), order: f.outOrder, payload: append(b[:0], payload...), lane: uint8(l.index + 1)})
	f.keptBytes += len(payload)
}

// receivedAll notes that everything of the call has come.
func (f *peer) receivedAll() {
	f.have = f.inOrder
	if f.wide && (f.owesAck || f.have-f.told >= ackEvery) {
		f.ackNow = true
	}
}

// partial is how many payload bytes of frames that are not whole have arrived.
func (f *peer) partial() int {
	n := 0
	for _, l := range f.lanes {
		if l.conn != nil && l.conn.Receiving() {
			n += l.conn.PayloadReceived()
		}
	}
	return n
}

// pause keeps the poller from telling of lanes that no call waits on.
func (f *peer) pause() {
	for _, l := range f.lanes {
		if l.conn != nil {
			l.conn.Pause()
		}
	}
}

// describeRails names every rail and what has become of it.
func (f *peer) describeRails() string {
	var rails []string
	for _, r := range f.rails {
		text := r.String()
		for _, l := range f.lanes {
			if l.rail == r && l.why != nil {
				text += fmt.Sprintf(" (%v)", l.why)
				break
			}
		}
		rails = append(rails, text)
	}
	return strings.Join(rails, "; ")
}
