package roce

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// A tag is what the ranks of a call must agree on, in 16 bits and never 0: the kind of call exactly, so that a desync can be named, and its
// bytes modulo a prime, so that lengths that ranks may confuse, as near ones and powers of two, differ.
const (
	tagPrime = 3853
	tagKinds = 2 + 3*5 // gather, exchange, all-reduces
)

// mailCall says what a tag is of.
type mailCall struct {
	op     fabric.Op
	dtype  fabric.DType    // of an all-reduce
	reduce fabric.ReduceOp // likewise
}

// kind numbers what goes down the mailbox; -1 is what does not.
func (c *mailCall) kind() int {
	switch c.op {
	case fabric.AllGather:
		return 0
	case fabric.Exchange:
		return 1
	case fabric.AllReduce:
		if c.dtype < fabric.F16 || c.dtype > fabric.F32 || !c.reduce.Valid() {
			return -1
		}
		return 2 + int(c.dtype-fabric.F16)*5 + int(c.reduce-fabric.Sum)
	}
	return -1
}

func tagOf(kind, bytes int) uint32 { return uint32(1 + kind*tagPrime + bytes%tagPrime) }

// callOfTag is the kind of call that has a tag, and its bytes modulo tagPrime; false of a tag that no call has.
func callOfTag(tag uint64) (c mailCall, bytes int, ok bool) {
	if tag == 0 || tag > tagKinds*tagPrime {
		return mailCall{}, 0, false
	}
	kind := int(tag-1) / tagPrime
	switch kind {
	case 0:
		c.op = fabric.AllGather
	case 1:
		c.op = fabric.Exchange
	default:
		c = mailCall{fabric.AllReduce, fabric.F16 + fabric.DType((kind-2)/5), fabric.Sum + fabric.ReduceOp((kind-2)%5)}
	}
	return c, int(tag-1) % tagPrime, true
}

func (c mailCall) String() string {
	if c.op == fabric.AllReduce {
		return fmt.Sprintf("%v (%v of %v)", c.op, c.reduce, c.dtype)
	}
	return c.op.String()
}

// flagged names the call that a flag is of, as far as a flag says.
func flagged(flag, seq uint64, slotBytes int) string {
	c, bytes, ok := callOfTag(flag >> flagShift)
	if !ok {
		return fmt.Sprintf("what is no call, flag %#x", flag)
	}
	text := fmt.Sprintf("%v seq %d, %d bytes", c, seq, bytes)
	if bytes+tagPrime <= slotBytes {
		text += fmt.Sprintf(" or a multiple of %d more", tagPrime)
	}
	return text
}
