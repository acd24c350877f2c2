package plan_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A call moved in parts, each by the whole call's own rules on its slabs, is the whole call.
func TestPartsOfAMoveAreTheMove(t *testing.T) { rapid.Check(t, partsAreTheWhole) }

func FuzzPartsOfAMoveAreTheMove(f *testing.F) { f.Fuzz(rapid.MakeFuzz(partsAreTheWhole)) }

func partsAreTheWhole(t *rapid.T) {
	ranks := draw(t)
	want, got := buffers(ranks), buffers(ranks)
	whole := make([]plan.Part, len(ranks))
	for r, s := range ranks {
		whole[r] = plan.Part{In: s.In, Out: s.Out, Stride: s.Stride, RowBytes: s.RowBytes, Lengths: s.Lengths, InLengths: s.InLengths}
	}
	move(ranks[0].Op, whole, want)

	parts := 0
	for _, s := range ranks {
		parts = max(parts, s.Parts())
	}
	for _, s := range ranks {
		if s.Op != fabric.AllToAllV {
			require.Equal(t, parts, s.Parts(), "every rank cuts alike")
		}
	}
	mostIn, mostOut := plan.SlabBytes(len(ranks), ranks[0].PartBytes)
	for k := range parts {
		slabs, calls := make([]memory, len(ranks)), make([]plan.Part, len(ranks))
		for r, s := range ranks {
			calls[r] = s.Part(k, make([]int, 2*s.World))
			require.LessOrEqual(t, calls[r].In, mostIn)
			require.LessOrEqual(t, calls[r].Out, mostOut)
			slabs[r] = memory{make([]byte, calls[r].In), make([]byte, calls[r].Out)}
			down := s.Down(nil, k)
			require.Equal(t, calls[r].In, total(down), "a part's in is all brought down")
			for _, p := range down {
				copy(slabs[r].in[p.Slab:][:p.Bytes], got[r].in[p.Buffer:][:p.Bytes])
			}
		}
		move(ranks[0].Op, calls, slabs)
		for r, s := range ranks {
			for _, p := range s.Up(nil, k) {
				copy(got[r].out[p.Buffer:][:p.Bytes], slabs[r].out[p.Slab:][:p.Bytes])
			}
		}
	}
	for r := range ranks {
		require.Equal(t, want[r].out, got[r].out, "rank %d of %+v", r, *ranks[r])
	}
}

type memory struct{ in, out []byte }

func buffers(ranks []*plan.Shape) []memory {
	m := make([]memory, len(ranks))
	for r, s := range ranks {
		m[r] = memory{make([]byte, s.In), make([]byte, s.Out)}
		for i := range m[r].in {
			m[r].in[i] = byte(1 + r*37 + i*11 + i>>8)
		}
	}
	return m
}

func total(pieces []plan.Piece) (n int) {
	for _, p := range pieces {
		n += p.Bytes
	}
	return n
}

// move is every operation that moves bytes, as contract has it. A reduction stands for the move of its blocks: it takes
// rank 0's.
func move(op fabric.Op, calls []plan.Part, m []memory) {
	world := len(calls)
	for me, c := range calls {
		out := m[me].out
		at := 0
		for r, from := range calls {
			in := m[r].in
			switch op {
			case fabric.AllReduce, fabric.Broadcast:
				if r == 0 && (op == fabric.AllReduce || me != 0) {
					copy(out, in)
				}
			case fabric.ReduceScatter:
				if r == 0 {
					copy(out, in[me*len(out):])
				}
			case fabric.AllGather:
				copy(out[r*len(in):], in)
			case fabric.AllGatherV:
				copy(out[r*c.Stride:], in[:c.Lengths[r]])
			case fabric.AllGatherRows:
				for i := 0; i*c.RowBytes < len(in); i++ {
					copy(out[(i*world+r)*c.RowBytes:], in[i*c.RowBytes:][:c.RowBytes])
				}
			case fabric.AllToAll:
				n := len(in) / world
				copy(out[r*n:], in[me*n:][:n])
			case fabric.AllToAllV:
				off := 0
				for _, n := range from.InLengths[:me] {
					off += n
				}
				at += copy(out[at:][:c.Lengths[r]], in[off:][:from.InLengths[me]])
			case fabric.SendRecv: // a ring
				if (r+1)%world == me {
					copy(out, in)
				}
			}
		}
	}
}

var ops = []fabric.Op{fabric.AllReduce, fabric.ReduceScatter, fabric.AllGather, fabric.AllGatherV, fabric.AllGatherRows, fabric.Broadcast,
	fabric.AllToAll, fabric.AllToAllV, fabric.SendRecv, fabric.Barrier}

// draw gives the shapes of one call, a rank each.
func draw(t *rapid.T) []*plan.Shape {
	world := rapid.IntRange(1, 5).Draw(t, "world")
	partBytes := rapid.SampledFrom([]int{16, 32, 64, 112}).Draw(t, "part")
	op := rapid.SampledFrom(ops).Draw(t, "op")
	n := rapid.IntRange(0, 500).Draw(t, "bytes")
	row := rapid.IntRange(1, 200).Draw(t, "row")
	lengths := make([][]int, world) // [from][to]
	for r := range lengths {
		lengths[r] = rapid.SliceOfN(rapid.IntRange(0, 150), world, world).Draw(t, "lengths")
	}
	stride := n
	for _, l := range lengths[0] {
		stride = max(stride, l)
	}
	ranks := make([]*plan.Shape, world)
	for r := range ranks {
		s := &plan.Shape{Op: op, World: world, PartBytes: partBytes, In: n, Out: n}
		switch op {
		case fabric.Barrier:
			s.In, s.Out = 0, 0
		case fabric.AllReduce:
			s.In, s.Out = n&^7, n&^7
		case fabric.ReduceScatter:
			s.Out = n &^ 7
			s.In = s.Out * world
		case fabric.AllGather:
			s.Out = n * world
		case fabric.AllToAll:
			s.In, s.Out = n*world, n*world
		case fabric.AllGatherRows:
			s.RowBytes, s.In = row, n/row*row
			s.Out = s.In * world
		case fabric.AllGatherV:
			s.Stride, s.Lengths = stride, lengths[0]
			s.In, s.Out = lengths[0][r], stride*world
		case fabric.Broadcast:
			if r == 0 {
				s.Out = 0
			} else {
				s.In = 0
			}
		case fabric.AllToAllV:
			s.InLengths, s.In, s.Out = lengths[r], 0, 0
			for p := range world {
				s.Lengths = append(s.Lengths, lengths[p][r])
				s.In, s.Out = s.In+lengths[r][p], s.Out+lengths[p][r]
			}
		}
		s.Fill()
		ranks[r] = s
	}
	return ranks
}

func TestWhatIsOneRunIsOnePiece(t *testing.T) {
	s := plan.Shape{Op: fabric.AllGather, World: 4, PartBytes: 64, In: 64, Out: 256}
	s.Fill()
	assert.Equal(t, 1, s.Parts())
	assert.Equal(t, []plan.Piece{{Bytes: 256}}, s.Up(nil, 0))
	s.In, s.Out = 65, 260
	s.Fill()
	assert.Equal(t, 2, s.Parts())
	assert.Len(t, s.Up(nil, 0), 4)
}

func TestWindowsGoByTheStrideAlone(t *testing.T) {
	s := plan.Shape{Op: fabric.AllGatherV, World: 2, PartBytes: 64, Stride: 200, Out: 400, In: 1, Lengths: []int{1, 65}}
	s.Fill()
	assert.Equal(t, 2, s.Parts())
	assert.Equal(t, 4, s.Windows())
	assert.Empty(t, s.Down(nil, 3))
	assert.Equal(t, plan.Part{Stride: 8, Out: 16, Lengths: []int{0, 0}}, s.Part(3, make([]int, 4)))
	s.Lengths = nil
	s.Fill()
	assert.Equal(t, 4, s.Windows(), "before the lengths are known")
	assert.Equal(t, []plan.Piece{{192, 0, 8}, {392, 8, 8}}, s.UpWide(nil, 3))
}

func TestCuttingAllocatesNothing(t *testing.T) {
	s := plan.Shape{Op: fabric.AllToAllV, World: 2, PartBytes: 64, In: 300, Out: 300, Lengths: []int{100, 200}, InLengths: []int{100, 200}}
	room, pieces := make([]int, 4), make([]plan.Piece, 0, 2)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s.Fill()
		for k := range s.Parts() {
			s.Part(k, room)
			s.Down(pieces, k)
			s.Up(pieces, k)
		}
	}))
}
