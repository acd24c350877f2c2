package stage

import (
	"encoding/binary"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// entry is a queued call: what the proxy needs of it, copied from the engine's.
type entry struct {
	call    fabric.Call
	shape   plan.Shape
	queued  plan.Shape // as it was then: the kernels' launches go by it, while the proxy learns more
	lengths []int      // room for the two vectors, which call and shape view
	in, out []byte     // the engine's buffers for the CPU, where they are registered and it may touch them; else nil

	vector bool // shape's lengths are known: AllGatherVDevice
	agreed bool // rounds is known: AllToAllV
	whole  int  // AllToAllV: the largest block of all ranks
	rounds int  // parts of the call as all ranks together have them
}

// set takes over a call.
func (e *entry) set(t *Transport, c *fabric.Call) {
	if e.lengths == nil {
		e.lengths = make([]int, 2*t.world)
	}
	e.call = *c
	e.call.Lengths, e.call.InLengths = nil, nil
	if len(c.Lengths) > 0 {
		e.call.Lengths = e.lengths[:copy(e.lengths[:t.world], c.Lengths)]
	}
	if len(c.InLengths) > 0 {
		e.call.InLengths = e.lengths[t.world:][:copy(e.lengths[t.world:], c.InLengths)]
	}
	e.shape = plan.Shape{Op: c.Op, World: t.world, PartBytes: t.partBytes, In: c.Device.InBytes, Out: c.Device.OutBytes,
		Stride: c.Stride, RowBytes: c.RowBytes, Lengths: e.call.Lengths, InLengths: e.call.InLengths}
	e.shape.Fill()
	e.queued = e.shape
	e.vector, e.agreed, e.whole = c.Device.Lengths == 0, c.Op != fabric.AllToAllV, c.Bytes
	e.rounds = e.shape.Parts()
	e.in = t.registered.view(c.Device.In, c.Device.InBytes)
	e.out = t.registered.view(c.Device.Out, c.Device.OutBytes)
}

// learn takes the lengths that came down from the device. They are the engine's, so nothing of them is believed.
func (e *entry) learn(t *Transport, raw []byte) error {
	lengths := e.lengths[:t.world]
	for r := range lengths {
		n := int(int32(binary.NativeEndian.Uint32(raw[4*r:])))
		if n < 0 || n > e.call.Stride {
			return fmt.Errorf("all-gather-v: lengths[%d] is %d in device memory, outside 0..stride %d", r, n, e.call.Stride)
		}
		lengths[r] = n
	}
	e.call.Lengths, e.call.Hash = lengths, fabric.HashLengths(lengths)
	e.shape.Lengths, e.shape.In = lengths, lengths[t.rank]
	e.shape.Fill()
	e.vector, e.rounds = true, e.shape.Parts()
	return nil
}

// agree takes the largest block of all ranks.
func (e *entry) agree(largest int) {
	e.agreed, e.whole = true, largest
	e.rounds = e.shape.PartsOf(largest)
}

// part is the call that moves a part between slabs; in and out are those of the part's set, and the engine's own where
// they serve as they are.
func (e *entry) part(t *Transport, j *job, k int) fabric.Call {
	p := e.shape.Part(k, t.lengths)
	c := fabric.Call{Op: e.call.Op, DType: e.call.DType, Reduce: e.call.Reduce, Peer: e.call.Peer, From: e.call.From, Root: e.call.Root,
		Stride: p.Stride, RowBytes: p.RowBytes, Lengths: p.Lengths, InLengths: p.InLengths}
	c.In, c.Out = j.input.mem[:p.In], j.output.mem[:p.Out]
	if j.inPlace != nil && k == j.part {
		c.In = j.inPlace
	}
	if j.outPlace != nil && k == j.part {
		c.Out = j.outPlace
	}
	if e.rounds == 1 && e.call.Op != fabric.AllGatherV {
		return c
	}
	c.Part, c.Whole, c.WholeHash = uint32(k), e.whole, e.call.Hash
	if e.call.Op == fabric.SendRecv {
		c.Whole, c.FromWhole = e.call.Device.InBytes, e.call.Device.OutBytes
		if k > 0 && p.In == 0 {
			c.Peer = -1
		}
		if k > 0 && p.Out == 0 {
			c.From = -1
		}
	}
	return c
}
