package roce

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
)

// hop is this end of a queue pair, this end's share, and where the other end's lies. A lane has one; a relay two.
type hop struct {
	d      Driver
	hca    *hca
	qp     QP
	rank   int    // at the other end
	name   string // of the hop, for errors
	share  share
	far    uint64 // address of the other end's share
	farKey uint32
	// immediate says that what is written is told by a completion at the other end, since its tail could be seen before it.
	immediate bool
	arrived   uint64         // frames that completions have told of
	offered   [offers]uint64 // offers likewise
	owed      int            // receives that these used up

	depth             uint64 // requests that have room
	posted, completed uint64
	chain             [maxChain]Work
	failure, flushed  string // what its first failed completion said, and its first flushed one
}

const (
	maxChain = 3       // requests that are posted at a time
	immOffer = 1 << 31 // the immediate of an offer, its step in the lowest bit; else it is a frame's number
)

// room says whether a chain can be posted.
func (e *hop) room() bool { return e.posted+maxChain-e.completed <= e.depth }

// post queues the first n requests of the chain. The last one completes where signaled is set, or so many have not that the
// queue could fill up untold.
func (e *hop) post(n int, signaled bool) error {
	last, quarter, end := &e.chain[n-1], e.depth/4, e.posted+uint64(n)
	last.Signaled, last.ID = signaled || end/quarter != e.posted/quarter, end
	posted, err := e.d.Post(e.qp.Handle, e.chain[:n])
	e.posted += uint64(posted)
	if err != nil {
		return flow.PeerCause(e.rank, 0, fmt.Sprintf("posting on %s: %v", e.name, err), err)
	}
	return nil
}

// write is a request for pieces that go to a place in the other end's share.
func (e *hop) write(at int, pieces [2]Piece) Work {
	return Work{Pieces: pieces, Remote: e.far + uint64(at), RKey: e.farKey}
}

// word is one that stores v there.
func (e *hop) word(at int, v uint64) Work {
	w := e.write(at, [2]Piece{e.share.word(v)})
	w.Inline = true
	return w
}

// sendFrame posts frame n, whose bytes are the pieces, and what tells of it. before are requests of the chain that go first.
func (e *hop) sendFrame(n uint64, pieces [2]Piece, before int, signaled bool) error {
	e.chain[before] = e.write(e.share.slotAt(n), pieces)
	if e.immediate {
		e.chain[before].Immediate, e.chain[before].Imm = true, uint32(n)&^immOffer
		return e.post(before+1, signaled)
	}
	e.chain[before+1] = e.word(tailAt, n)
	return e.post(before+2, signaled)
}

// tail is how many frames have come.
func (e *hop) tail() uint64 {
	if e.immediate {
		return e.arrived
	}
	return e.share.tail()
}

// completion books what a completion of the queue pair says.
func (e *hop) completion(c *Completion) {
	switch {
	case c.Failed && c.Flushed:
		e.completed = max(e.completed, min(c.ID, e.posted))
		if e.flushed == "" {
			e.flushed = c.Text
		}
	case c.Failed:
		if e.failure == "" {
			e.failure = c.Text
		}
	case !c.Receive:
		e.completed = max(e.completed, min(c.ID, e.posted))
	case c.Imm&immOffer != 0:
		e.offered[c.Imm&(offers-1)]++
		e.owed++
	default:
		e.arrived++
		e.owed++
	}
}

// restock gives back the receives that were used up. There are twice as many as frames can be on their way.
func (e *hop) restock() error {
	if e.owed < e.share.slots/2 {
		return nil
	}
	if err := e.d.PostReceives(e.qp.Handle, e.owed); err != nil {
		return flow.PeerCause(e.rank, 0, fmt.Sprintf("posting receives on %s: %v", e.name, err), err)
	}
	e.owed = 0
	return nil
}

// failed is the cause that a failed completion makes; nil where none did. One that was flushed is no cause while another exists.
func (e *hop) failed() error {
	switch {
	case e.failure != "":
		return e.cause(e.failure)
	case e.flushed != "":
		return e.cause(e.flushed)
	}
	return nil
}

func (e *hop) cause(text string) *fabric.Cause {
	return flow.PeerCause(e.rank, 0, fmt.Sprintf("%s: %s", e.name, text), nil)
}
