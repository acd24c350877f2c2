package reduce

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// BenchmarkSum reports GB/s of the sum, and of-copy, that over the rate of a copy of as many bytes: medians of rounds that
// time copy, sum, sum, copy.
func BenchmarkSum(b *testing.B) {
	for _, fastest := range []way{byVectors, byLoops, byReference} {
		for _, dt := range []fabric.DType{fabric.F32, fabric.BF16, fabric.F16, fabric.F64, fabric.I32} {
			for _, n := range []int{256 << 10, 4 << 20} {
				for _, world := range []int{2, 8} {
					for _, place := range []string{"apart", "inplace"} {
						b.Run(fmt.Sprintf("%v/%v/%dKiB/world=%d/%s", fastest, dt, n>>10, world, place), func(b *testing.B) {
							benchmark(b, fastest, dt, n, world, place == "inplace")
						})
					}
				}
			}
		}
	}
}

func benchmark(b *testing.B, fastest way, dt fabric.DType, n, world int, inPlace bool) {
	ins := make([][]byte, world)
	for r := range ins {
		ins[r] = noise(n, uint64(r+1))
	}
	out := make([]byte, n)
	if inPlace {
		out = ins[0]
	}
	from, to := noise(n, 99), make([]byte, n)
	took := func(f func()) float64 {
		began := time.Now()
		f()
		return float64(time.Since(began))
	}
	move := func() { copy(to, from) }
	sum := func() { combine(out, ins, dt, fabric.Sum, fastest) }
	var ratios, rates []float64
	for b.Loop() {
		copies := took(move)
		sums := took(sum) + took(sum)
		ratios = append(ratios, (copies+took(move))/sums)
		rates = append(rates, float64(2*n)/sums)
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	b.ReportMetric(0, "ns/op") // a round is no operation
	b.ReportMetric(rates[len(rates)/2], "GB/s")
	b.ReportMetric(ratios[len(ratios)/2], "of-copy")
}
