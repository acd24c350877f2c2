package tcp

import (
	"fmt"
	"sync"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/require"
)

// BenchmarkExchange swaps bytes between two ranks of this process, each with a core to itself.
func BenchmarkExchange(b *testing.B) {
	for _, n := range []int{16, 4 << 10, 32 << 10, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ts := open(b, 2, Config{})
			var wg sync.WaitGroup
			b.SetBytes(int64(n))
			b.ReportAllocs()
			b.ResetTimer()
			for r, t := range ts {
				c := fabric.New(t, fabric.Options{})
				wg.Go(func() {
					in, out := make([]byte, n), make([]byte, n)
					for range b.N {
						if err := c.Exchange(out, in, 1-r); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestTwoRanksReduce(t *testing.T) {
	ts := open(t, 3, Config{EagerBytes: 64, ChunkBytes: 64})
	var wg sync.WaitGroup
	for r, tr := range ts {
		c := fabric.New(tr, fabric.Options{})
		wg.Go(func() {
			for _, n := range []int{0, 1, 5, 16, 17, 100, 1000} {
				in, out := make([]int32, n), make([]int32, n)
				for i := range in {
					in[i] = int32(i * (r + 1))
				}
				if err := c.AllReduce(fabric.Bytes(out), fabric.Bytes(in), fabric.I32, fabric.Sum); err != nil {
					t.Error(err)
					return
				}
				for i := range out {
					if out[i] != int32(6*i) {
						t.Errorf("rank %d n %d: out[%d] is %d", r, n, i, out[i])
						return
					}
				}
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
}
