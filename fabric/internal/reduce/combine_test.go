package reduce

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func pairs(yield func(fabric.DType, fabric.ReduceOp) bool) {
	for _, dt := range fabric.DTypes() {
		for _, op := range fabric.ReduceOps() {
			if op.Takes(dt) && !yield(dt, op) {
				return
			}
		}
	}
}

// edges are the bit patterns where arithmetic changes its mind, low bytes first.
func edges(dt fabric.DType) [][]byte {
	var bits []uint64
	switch dt {
	case fabric.F16:
		bits = []uint64{0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xfe01}
	case fabric.BF16:
		bits = []uint64{0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffc1}
	case fabric.F32:
		bits = []uint64{0, 1 << 31, 1, 1<<31 | 1, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x33800000, 0x7f7fffff, 0xff7fffff,
			0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffc00001}
	case fabric.F64:
		bits = []uint64{0, 1 << 63, 1, 1<<63 | 1, 1<<52 - 1, 1 << 52, 0x3ff << 52, 0xbff << 52, 0x3ff<<52 | 1, 0x7ff<<52 - 1, 0xfff<<52 - 1,
			0x7ff << 52, 0xfff << 52, 0x7ff<<52 | 1, 0x7ff8 << 48, 0xfff8<<48 | 1}
	default:
		top := uint64(1) << (8*dt.Size() - 1)
		bits = []uint64{0, 1, 2, 3, top - 1, top, top + 1, 2*top - 1, 2*top - 2}
	}
	var all [][]byte
	for _, v := range bits {
		all = append(all, order.AppendUint64(nil, v)[:dt.Size()])
	}
	return all
}

func TestCombineIsTheOracleOnEveryPairOfEdges(t *testing.T) {
	for dt, op := range pairs {
		for _, a := range edges(dt) {
			got := make([]byte, dt.Size())
			Combine(got, [][]byte{a}, dt, op)
			require.Equal(t, oracle([][]byte{a}, dt, op), got, "%v %v of %x alone", dt, op, a)
			for _, b := range edges(dt) {
				ins := [][]byte{a, b}
				Combine(got, ins, dt, op)
				require.Equal(t, oracle(ins, dt, op), got, "%v %v of %x", dt, op, ins)
			}
		}
	}
}

func TestCombineIsTheOracleOnAnyBits(t *testing.T) {
	for dt, op := range pairs {
		t.Run(fmt.Sprintf("%v/%v", dt, op), rapid.MakeCheck(func(t *rapid.T) {
			world := rapid.IntRange(1, 9).Draw(t, "world")
			n := rapid.IntRange(0, 5).Draw(t, "elements")
			element := rapid.OneOf(rapid.SampledFrom(edges(dt)), rapid.SliceOfN(rapid.Byte(), dt.Size(), dt.Size()))
			ins := make([][]byte, world)
			for r := range ins {
				for range n {
					ins[r] = append(ins[r], element.Draw(t, "element")...)
				}
			}
			got := make([]byte, n*dt.Size())
			Combine(got, ins, dt, op)
			for i := range n {
				lo, hi := i*dt.Size(), (i+1)*dt.Size()
				one := make([][]byte, world)
				for r := range ins {
					one[r] = ins[r][lo:hi]
				}
				require.Equal(t, oracle(one, dt, op), got[lo:hi], "element %d of %x", i, one)
			}
		}))
	}
}

// Long, unaligned and in place is the same as short, aligned and apart, and nothing past the ends is touched.
func TestCombineGoesByElementWhateverTheLayout(t *testing.T) {
	const world = 3
	for dt, op := range pairs {
		for _, n := range []int{0, 1, 3, blockElements - 1, blockElements, blockElements + 1, 3*blockElements + 7} {
			ins := make([][]byte, world)
			for r := range ins {
				ins[r] = noise(n*dt.Size(), uint64(r+1))
			}
			want := make([]byte, 0, n*dt.Size())
			for i := range n {
				one := make([][]byte, world)
				for r := range ins {
					one[r] = ins[r][i*dt.Size() : (i+1)*dt.Size()]
				}
				element := make([]byte, dt.Size())
				Combine(element, one, dt, op)
				want = append(want, element...)
			}
			for off := range 3 {
				for in := -1; in < world; in++ {
					moved := make([][]byte, world)
					for r := range ins {
						moved[r] = append(bytes.Repeat([]byte{0xa5}, off), append(bytes.Clone(ins[r]), 0xa5)...)[off : off+len(ins[r])]
					}
					guarded := bytes.Repeat([]byte{0xa5}, off+len(want)+9)
					out := guarded[off : off+len(want)]
					if in >= 0 {
						out = moved[in]
					}
					Combine(out, moved, dt, op)
					require.Equal(t, want, bytes.Clone(out), "%v %v, %d elements, offset %d, in place of %d", dt, op, n, off, in)
					if in < 0 {
						assert.Equal(t, bytes.Repeat([]byte{0xa5}, 9), guarded[off+len(want):])
					}
					for r := range ins {
						if r != in {
							require.Equal(t, ins[r], moved[r], "an input was written")
						}
					}
				}
			}
		}
	}
}

func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

func TestCombineGolden(t *testing.T) {
	f32 := func(v ...float32) []byte { return fabric.Bytes(v) }
	u16 := func(v ...uint16) []byte { return fabric.Bytes(v) }
	zero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name string
		dt   fabric.DType
		op   fabric.ReduceOp
		ins  [][]byte
		want []byte
	}{
		{"rank order decides", fabric.F32, fabric.Sum, [][]byte{f32(1e8), f32(1), f32(-1e8)}, f32(0)},
		{"and the other order", fabric.F32, fabric.Sum, [][]byte{f32(1e8), f32(-1e8), f32(1)}, f32(1)},
		{"f16 rounds once", fabric.F16, fabric.Sum, [][]byte{u16(0x6800), u16(0x3c00), u16(0x3c00)}, u16(0x6801)},
		{"f16 may pass its range on the way", fabric.F16, fabric.Sum, [][]byte{u16(0x7bff), u16(0x7bff), u16(0xfbff)}, u16(0x7bff)},
		{"bf16 rounds once", fabric.BF16, fabric.Sum, [][]byte{u16(0x4380), u16(0x3f80), u16(0x3f80)}, u16(0x4381)},
		{"avg divides before rounding", fabric.F16, fabric.Avg, [][]byte{u16(0x7bff), u16(0x7bff)}, u16(0x7bff)},
		{"max of zeros", fabric.F32, fabric.Max, [][]byte{f32(zero), f32(0)}, f32(0)},
		{"max of zeros, turned", fabric.F32, fabric.Max, [][]byte{f32(0), f32(zero)}, f32(0)},
		{"min of zeros", fabric.F32, fabric.Min, [][]byte{f32(0), f32(zero)}, f32(zero)},
		{"integers wrap", fabric.I8, fabric.Sum, [][]byte{{0x7f}, {1}}, []byte{0x80}},
		{"unsigned max", fabric.U8, fabric.Max, [][]byte{{0x7f}, {0x80}}, []byte{0x80}},
		{"signed max", fabric.I8, fabric.Max, [][]byte{{0x7f}, {0x80}}, []byte{0x7f}},
		{"subnormals stay", fabric.F32, fabric.Sum, [][]byte{f32(math.SmallestNonzeroFloat32), f32(math.SmallestNonzeroFloat32)},
			f32(2 * math.SmallestNonzeroFloat32)},
		{"max of a NaN", fabric.F32, fabric.Max, [][]byte{f32(1), f32(float32(math.NaN()))}, []byte{0, 0, 0xc0, 0x7f}},
		{"infinities apart", fabric.F64, fabric.Sum, [][]byte{fabric.Bytes([]float64{math.Inf(1)}), fabric.Bytes([]float64{math.Inf(-1)})},
			[]byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}},
		{"a NaN alone", fabric.BF16, fabric.Sum, [][]byte{u16(0xff81)}, u16(0x7fc0)},
	} {
		got := make([]byte, len(c.want))
		Combine(got, c.ins, c.dt, c.op)
		assert.Equal(t, c.want, got, c.name)
	}
}

func TestCombineDoesNotAllocate(t *testing.T) {
	for dt, op := range pairs {
		ins := [][]byte{noise(1024*dt.Size(), 1), noise(1024*dt.Size(), 2)}
		out := make([]byte, len(ins[0]))
		assert.Zero(t, testing.AllocsPerRun(10, func() { Combine(out, ins, dt, op) }), "%v %v", dt, op)
	}
}
