package fabric

import "fmt"

// Op names an operation. Its value travels in frame headers and never changes.
type Op uint8

const (
	AllReduce Op = iota + 1
	ReduceScatter
	AllGather
	AllGatherV
	AllGatherRows
	Broadcast
	AllToAll
	AllToAllV
	Exchange
	SendRecv
	Send
	Recv
	Barrier
)

var opNames = [...]string{
	AllReduce: "all-reduce", ReduceScatter: "reduce-scatter", AllGather: "all-gather", AllGatherV: "all-gather-v",
	AllGatherRows: "all-gather-rows", Broadcast: "broadcast", AllToAll: "all-to-all", AllToAllV: "all-to-all-v",
	Exchange: "exchange", SendRecv: "send-recv", Send: "send", Recv: "recv", Barrier: "barrier",
}

// Ops lists every operation in order of value.
func Ops() []Op {
	ops := make([]Op, 0, len(opNames)-1)
	for op := AllReduce; op <= Barrier; op++ {
		ops = append(ops, op)
	}
	return ops
}

func (o Op) String() string {
	if o < AllReduce || o > Barrier {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return opNames[o]
}

// Valid says whether o is one of the operations above.
func (o Op) Valid() bool { return o >= AllReduce && o <= Barrier }

// Reduces says whether o combines numbers, and so carries a DType and a ReduceOp.
func (o Op) Reduces() bool { return o == AllReduce || o == ReduceScatter }

// Class says which sequence a call is numbered in.
func (o Op) Class() Class {
	switch o {
	case Exchange, SendRecv, Send, Recv:
		return Pair
	default:
		return Group
	}
}

// Class is the kind of sequence a call is numbered in.
type Class uint8

const (
	Group Class = iota + 1 // the group's: the same call on every rank
	Pair                   // that of an ordered pair of ranks
)

func (c Class) String() string {
	switch c {
	case Group:
		return "group"
	case Pair:
		return "pair"
	default:
		return fmt.Sprintf("class(%d)", uint8(c))
	}
}
