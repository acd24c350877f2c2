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
	c           calls
	host        *fabric.Collective
	kind, about string
	device      *Device // nil: the calls are on host memory
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

func newBench(on Subject, s spec) (*bench, error) {
	b := &bench{spec: s, c: on.Host, kind: on.Kind, about: on.About, host: on.Host, device: on.Device, rank: on.Host.Rank(), world: on.Host.World(), steps: 1}
	if b.device != nil {
		b.c = queued{b.device}
	}
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
		b.call = b.c.Barrier
	default:
		return nil, fabric.Invalidf("%v is no operation to measure; send covers recv", s.op)
	}
	if b.device != nil {
		if err := b.device.place(b.in, b.out); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// close gives back what a bench on device memory holds; no call of it is in flight.
func (b *bench) close() error {
	if b.device == nil {
		return nil
	}
	return b.device.free()
}

// once makes one call and waits for it.
func (b *bench) once() error {
	if err := b.call(); err != nil || b.device == nil {
		return err
	}
	return b.device.settle()
}

// run makes one call on what in and out hold, and has the result in out.
func (b *bench) run() error {
	if b.device == nil {
		return b.call()
	}
	if err := b.device.up(); err != nil {
		return err
	}
	return firstOf(b.once(), b.device.down)
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
	b.prepare(round)
	if err := b.run(); err != nil {
		return 0, err
	}
	b.expect(round)
	return b.differences(), nil
}

// prepare fills in with a round's input and out with poison.
func (b *bench) prepare(round int) {
	fill(b.out, poison)
	fill(b.want, poison)
	input(b.in, b.seed, b.rank, round, b.dtype) // after the poison: in place it lies within out
	if b.op == fabric.Broadcast && b.rank == 0 {
		copy(b.out, b.in)
	}
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
