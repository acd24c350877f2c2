package roce

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// A tag is what the ranks of a call must agree on: 1, and the kind of call times tagBytes, and its bytes; so never 0. Two values that no call has say
// something else.
const (
	tagBits     = 64 - flagShift
	tagBytes    = MaxMailboxBytes + 1
	tagKinds    = 2 + 3*5 // gather, exchange, all-reduces
	farewellTag = 1<<tagBits - 1
	noteTag     = farewellTag - 1 // of immediates alone
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

func tagOf(kind, bytes int) uint32 { return uint32(1 + kind*tagBytes + bytes) }

// flagOf is the word that tells of a call.
func flagOf(tag, epoch uint64) uint64 { return tag<<flagShift | epoch&flagEpoch }

// epochOf is the call that a flag is of: that nearest to a known one, since a flag has a number's low bits.
func epochOf(flag, near uint64) uint64 {
	return near + uint64(int64((flag-near)<<tagBits)>>tagBits)
}

// earlier says whether a flag is of a call before another's.
func earlier(flag, other uint64) bool { return int64((flag-other)<<tagBits) < 0 }

// parting says whether a flag is a goodbye: it is in the place of the next call's, and so of that one's number, so that a kernel waits for nothing more.
func parting(flag uint64) bool { return flag>>flagShift == farewellTag }

// callOfTag is the call that has a tag, and its bytes; false of a tag that no call has.
func callOfTag(tag uint64) (c mailCall, bytes int, ok bool) {
	if tag == 0 || tag > tagKinds*tagBytes {
		return mailCall{}, 0, false
	}
	kind := int(tag-1) / tagBytes
	switch kind {
	case 0:
		c.op = fabric.AllGather
	case 1:
		c.op = fabric.Exchange
	default:
		c = mailCall{fabric.AllReduce, fabric.F16 + fabric.DType((kind-2)/5), fabric.Sum + fabric.ReduceOp((kind-2)%5)}
	}
	return c, int(tag-1) % tagBytes, true
}

func (c mailCall) String() string {
	if c.op == fabric.AllReduce {
		return fmt.Sprintf("%v (%v of %v)", c.op, c.reduce, c.dtype)
	}
	return c.op.String()
}

// flagged names the call that a flag is of.
func flagged(flag, seq uint64) string {
	c, bytes, ok := callOfTag(flag >> flagShift)
	if !ok {
		return fmt.Sprintf("what is no call, flag %#x", flag)
	}
	return fmt.Sprintf("%v seq %d, %d bytes", c, seq, bytes)
}
