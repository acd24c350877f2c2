package reduce

import (
	"fmt"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
)

// BenchmarkCopy is what a sum can be compared with: the same bytes of out, moved.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{256 << 10, 4 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			out, in := make([]byte, n), noise(n, 1)
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(out, in)
			}
		})
	}
}

func BenchmarkCombine(b *testing.B) {
	for _, way := range []way{byVectors, byLoops, byReference} {
		for dt, op := range pairs {
			for _, n := range []int{256 << 10, 4 << 20} {
				for _, world := range []int{2, 8, 64} {
					for _, inPlace := range []bool{false, true} {
						b.Run(fmt.Sprintf("%v/%v/%v/%d/world=%d/inplace=%v", way, dt, op, n, world, inPlace), func(b *testing.B) {
							benchmarkCombine(b, way, dt, op, n, world, inPlace)
						})
					}
				}
			}
		}
	}
}

func benchmarkCombine(b *testing.B, fastest way, dt fabric.DType, op fabric.ReduceOp, n, world int, inPlace bool) {
	ins := make([][]byte, world)
	for r := range ins {
		ins[r] = noise(n, uint64(r+1))
	}
	out := make([]byte, n)
	if inPlace {
		out = ins[0]
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		combine(out, ins, dt, op, fastest)
	}
}
