package measure

import (
	"bytes"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// spec is one operation at one size.
type spec struct {
	op     fabric.Op
	bytes  int // that a rank contributes; rounded down to what the operation takes
	dtype  fabric.DType
	reduce fabric.ReduceOp
	seed   uint64

	inPlace bool // in lies within out, where the operation has such a form
}

// bench is a spec with buffers, ready to be called again and again.
type bench struct {
	spec
	c           *fabric.Collective
	rank, world int
	in, out     []byte
	want, peer  []byte // scratch of the check
	call        func() error
	steps       int // calls that a sample holds: its time is divided by it
	expect      func(round int)
}

// unit is what the bytes of an operation must be a multiple of.
func unit(op fabric.Op, world int, dt fabric.DType) int {
	switch op {
	case fabric.AllReduce:
		return dt.Size()
	case fabric.ReduceScatter:
		return dt.Size() * world
	case fabric.AllToAll, fabric.AllToAllV:
		return world
	default:
		return 1
	}
}

// partner is the other rank of a pair; the last of an odd number has none.
func (b *bench) partner() int {
	if p := b.rank ^ 1; p < b.world {
		return p
	}
	return -1
}

func newBench(c *fabric.Collective, s spec) (*bench, error) {
	b := &bench{spec: s, c: c, rank: c.Rank(), world: c.World(), steps: 1}
	b.bytes -= b.bytes % unit(s.op, b.world, s.dtype)
	if s.op == fabric.Barrier {
		b.bytes = 0
	}
	b.call, b.expect = func() error { return nil }, func(int) {}
	switch s.op {
	case fabric.AllReduce, fabric.ReduceScatter:
		b.reduction()
	case fabric.AllGather, fabric.AllGatherV, fabric.AllGatherRows:
		b.gather()
	case fabric.Broadcast:
		b.broadcast()
	case fabric.AllToAll, fabric.AllToAllV:
		b.exchangeAll()
	case fabric.Exchange, fabric.SendRecv, fabric.Send:
		b.pair()
	case fabric.Barrier:
		b.call = c.Barrier
	default:
		return nil, fabric.Invalidf("%v is no operation to measure; send covers recv", s.op)
	}
	return b, nil
}

func (b *bench) buffers(in, out int) {
	b.in, b.out, b.want = make([]byte, in), make([]byte, out), make([]byte, out)
	if at, ok := place(b.op, b.rank, in); ok && b.inPlace {
		b.in = b.out[at:][:in]
	}
}

// place says where in out the input lies when the call is in place; ok is false for an operation without such a form.
func place(op fabric.Op, rank, bytes int) (at int, ok bool) {
	switch op {
	case fabric.AllReduce:
		return 0, true
	case fabric.AllGather:
		return rank * bytes, true
	default:
		return 0, false
	}
}

// contribution is what rank r gives in a round, in scratch that the next call overwrites.
func (b *bench) contribution(r, n, round int) []byte {
	if cap(b.peer) < n {
		b.peer = make([]byte, n)
	}
	b.peer = b.peer[:n]
	input(b.peer, b.seed, r, round, b.dtype)
	return b.peer
}

// check makes one call on fresh input and counts the elements of out that are not what they should be.
func (b *bench) check(round int) (wrong int, err error) {
	fill(b.out, poison)
	fill(b.want, poison)
	input(b.in, b.seed, b.rank, round, b.dtype) // after the poison: in place it lies within out
	if b.op == fabric.Broadcast && b.rank == 0 {
		copy(b.out, b.in)
	}
	if err := b.call(); err != nil {
		return 0, err
	}
	b.expect(round)
	return b.differences(), nil
}

// differences counts the elements of out that are not those of want.
func (b *bench) differences() (wrong int) {
	if bytes.Equal(b.out, b.want) {
		return 0
	}
	size := 1
	if b.op.Reduces() {
		size = b.dtype.Size()
	}
	for i := 0; i < len(b.out); i += size {
		if !bytes.Equal(b.out[i:i+size], b.want[i:i+size]) {
			wrong++
		}
	}
	return wrong
}

func (s spec) String() string {
	if s.op.Reduces() {
		return fmt.Sprintf("%v %v %v of %d bytes", s.op, s.reduce, s.dtype, s.bytes)
	}
	return fmt.Sprintf("%v of %d bytes", s.op, s.bytes)
}
