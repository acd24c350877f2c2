package fabrictest

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// header goes before every message of a pipe: all that two ranks of one call agree on. Equal headers, same call.
type header struct {
	class   fabric.Class
	op      fabric.Op
	dtype   fabric.DType
	reduce  fabric.ReduceOp
	rank    int // Broadcast: the root; Pair: the receiver; -1 elsewhere
	seq     uint64
	total   int // bytes of the call, as its ranks compare them
	hash    uint64
	payload int
}

// headerBytes is what a header takes of a pipe's room.
const headerBytes = 64

func (h header) String() string {
	s := fmt.Sprintf("%v seq %d, %d bytes", h.op, h.seq, h.total)
	if h.op.Reduces() {
		s += fmt.Sprintf(", %v %v", h.dtype, h.reduce)
	}
	if h.op == fabric.Broadcast {
		s += fmt.Sprintf(", root %d", h.rank)
	}
	part := h.hash >> fabric.HashPartShift
	switch h.op {
	case fabric.AllGatherV:
		s += fmt.Sprintf(", lengths %#x", h.hash)
		part = 0
	case fabric.AllGatherRows:
		s += fmt.Sprintf(", rows of %d", h.hash^part<<fabric.HashPartShift)
	}
	if part != 0 {
		s += fmt.Sprintf(", part %d", part)
	}
	if h.payload != h.total {
		s += fmt.Sprintf(", %d of them here", h.payload)
	}
	return s
}

// headerOf is what rank from puts before its payload for rank to, in call c of rank me, which is one of the two.
func headerOf(c *fabric.Call, me, to, payload int) header {
	h := header{class: c.Class, op: c.Op, rank: -1, seq: c.Seq, total: c.Bytes, hash: c.Hash, payload: payload}
	switch {
	case c.Op.Reduces():
		h.dtype, h.reduce = c.DType, c.Reduce
	case c.Op == fabric.Broadcast:
		h.rank = c.Root
	case c.Class == fabric.Pair:
		h.rank = to
		if to == me {
			h.seq, h.total = c.FromSeq, c.FromBytes
		}
		if c.Op == fabric.Recv {
			h.op = fabric.Send
		}
	}
	return h
}
