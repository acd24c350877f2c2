package reduce

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var fastWays = []way{byLoops, byVectors}

// requireReference combines by every fast way, in place of rank in (apart if negative), and compares with the reference.
func requireReference(t require.TestingT, ins [][]byte, dt fabric.DType, op fabric.ReduceOp, in int, what string, args ...any) {
	want := make([]byte, len(ins[0]))
	reference(want, ins, 0, dt, op)
	for _, w := range fastWays {
		given := make([][]byte, len(ins))
		copy(given, ins)
		out := make([]byte, len(want))
		if in >= 0 {
			copy(out, ins[in])
			given[in] = out
		}
		combine(out, given, dt, op, w)
		if !bytes.Equal(want, out) {
			at := differs(want, out) / dt.Size() * dt.Size()
			var of [][]byte
			for _, b := range ins {
				of = append(of, b[at:at+dt.Size()])
			}
			require.Equal(t, want[at:at+dt.Size()], out[at:at+dt.Size()], "%v %v by %v, element %d of %d, of %x: %s",
				dt, op, w, at/dt.Size(), len(want)/dt.Size(), of, fmt.Sprintf(what, args...))
		}
	}
}

func differs(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// repeated is n times the element.
func repeated(element []byte, n int) []byte { return bytes.Repeat(element, n) }

func TestEveryWayCombinesEveryHalfAsTheReference(t *testing.T) {
	for _, dt := range []fabric.DType{fabric.BF16, fabric.F16} {
		all := make([]byte, 0, 2<<16)
		for i := range 1 << 16 {
			all = order.AppendUint16(all, uint16(i))
		}
		for _, op := range fabric.ReduceOps() {
			requireReference(t, [][]byte{all}, dt, op, -1, "alone")
			for i, partner := range edges(dt) {
				if i%3 != 0 && (op != fabric.Sum || testing.Short()) {
					continue
				}
				p := repeated(partner, 1<<16)
				requireReference(t, [][]byte{all, p}, dt, op, -1, "with %x after", partner)
				requireReference(t, [][]byte{p, all}, dt, op, 0, "with %x before", partner)
				other := repeated(edges(dt)[(i+5)%len(edges(dt))], 1<<16)
				requireReference(t, [][]byte{p, all, other}, dt, op, 1, "between %x and %x", partner, other[:2])
			}
		}
	}
}

// Every ordered triple of edges, in every lane: the number of triples is made odd.
func TestEveryWayCombinesEdgesInEveryLaneAsTheReference(t *testing.T) {
	for dt, op := range pairs {
		var a, b, c []byte
		for _, x := range edges(dt) {
			for _, y := range edges(dt) {
				for _, z := range edges(dt) {
					a, b, c = append(a, x...), append(b, y...), append(c, z...)
				}
			}
		}
		if len(a)/dt.Size()%2 == 0 {
			a, b, c = append(a, edges(dt)[0]...), append(b, edges(dt)[0]...), append(c, edges(dt)[0]...)
		}
		requireReference(t, [][]byte{repeated(a, 16), repeated(b, 16)}, dt, op, -1, "pairs")
		requireReference(t, [][]byte{repeated(a, 16), repeated(b, 16), repeated(c, 16)}, dt, op, 2, "triples")
	}
}

func TestEveryWayCombinesWhateverTheLayout(t *testing.T) {
	pool, pristine := noise(1<<19, 1), noise(1<<19, 1)
	for dt, op := range pairs {
		for off := range 64 {
			for n := range 48 {
				if n >= 40 {
					n = 61 + 37*(n-40) // up to some hundred
				}
				world := 1 + (off+n)%8
				requireLayout(t, pool, pristine, dt, op, world, n, off, (off+n/8)%(world+1)-1)
			}
		}
		requireLayout(t, pool, pristine, dt, op, 64, 203, 5, 63)
		requireLayout(t, pool, pristine, dt, op, 64, 203, 32, -1)
	}
}

// requireLayout combines noise, of which each rank's begins at an offset of its own, between guards, and in place of rank in
// unless negative.
func requireLayout(t require.TestingT, pool, pristine []byte, dt fabric.DType, op fabric.ReduceOp, world, n, off, in int) {
	size := n * dt.Size()
	ins, given := make([][]byte, world), make([][]byte, world)
	want := make([]byte, size)
	guarded, guard := make([]byte, off+size+64), bytes.Repeat([]byte{0xa5}, 64)
	out := guarded[off : off+size]
	for r := range ins {
		at := 4096*r + (off+13*r)%64
		ins[r], given[r] = pristine[at:at+size], pool[at:at+size]
	}
	reference(want, ins, 0, dt, op)
	for _, w := range fastWays {
		copy(guarded, guard)
		copy(guarded[off+size:], guard)
		if in >= 0 {
			copy(out, ins[in])
			given[in] = out
		}
		combine(out, given, dt, op, w)
		wrong := ""
		switch {
		case !bytes.Equal(want, out):
			wrong = "is not the reference"
		case !bytes.Equal(guard, guarded[off+size:]):
			wrong = "wrote past the end"
		case !bytes.Equal(guard[:off], guarded[:off]):
			wrong = "wrote before the start"
		case !bytes.Equal(pristine[:4096*world], pool[:4096*world]):
			wrong = "wrote to an input"
		}
		if wrong != "" {
			require.Fail(t, wrong, "%v %v by %v, world %d, %d elements, offset %d, in place of %d", dt, op, w, world, n, off, in)
		}
	}
}

// Long enough for several calls of a kernel, and for those that write around the caches, aligned and not.
func TestEveryWayCombinesLongBuffersAsTheReference(t *testing.T) {
	for _, dt := range []fabric.DType{fabric.I32, fabric.BF16, fabric.F16, fabric.F32, fabric.F64} {
		sizes := []int{64<<10 - 8, 64<<10 + 8}
		if dt == fabric.F32 || dt == fabric.BF16 {
			sizes = append(sizes, 4<<20+200)
		}
		for _, size := range sizes {
			a, b := noise(size, 1), noise(size, 2)
			requireReference(t, [][]byte{a, b}, dt, fabric.Sum, -1, "%d bytes", size)
			requireReference(t, [][]byte{a, b}, dt, fabric.Sum, 1, "%d bytes", size)
			want, out := make([]byte, size), make([]byte, size+9)
			reference(want, [][]byte{a, b}, 0, dt, fabric.Sum)
			Combine(out[1:size+1], [][]byte{a, b}, dt, fabric.Sum)
			assert.True(t, bytes.Equal(want, out[1:size+1]), "%v, %d bytes, not aligned", dt, size)
			assert.Equal(t, make([]byte, 8), out[size+1:], "%v, %d bytes", dt, size)
		}
	}
}

func TestEveryWayCombinesAnythingAsTheReference(t *testing.T) {
	for dt, op := range pairs {
		t.Run(fmt.Sprintf("%v/%v", dt, op), rapid.MakeCheck(func(t *rapid.T) {
			world := rapid.OneOf(rapid.IntRange(1, 9), rapid.Just(64)).Draw(t, "world")
			n := rapid.IntRange(0, 200).Draw(t, "elements")
			seed := rapid.Uint64().Draw(t, "seed")
			in := rapid.IntRange(-1, world-1).Draw(t, "in place of")
			special := rapid.SliceOfN(rapid.IntRange(0, world*max(n, 1)-1), 0, 30).Draw(t, "edges at")
			ins := make([][]byte, world)
			for r := range ins {
				off := int(seed>>(r%32)) & 63
				ins[r] = noise(off+n*dt.Size(), seed+uint64(r))[off:]
			}
			for i, at := range special {
				if n > 0 {
					copy(ins[at/n][at%n*dt.Size():], edges(dt)[(int(seed&0xff)+i)%len(edges(dt))])
				}
			}
			requireReference(t, ins, dt, op, in, "seed %d", seed)
		}))
	}
}
