package stage_test

import (
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACallOnDeviceMemory(t *testing.T) {
	ranks := openRanks(t, 2, func(_ int, c *stage.Config, _ *double) { c.PartBytes = 64 })
	for _, n := range []int{0, 1, 64, 65, 1000} {
		want := append(pattern(0, n), pattern(1, n)...)
		outs := make([][]byte, 2)
		for i, r := range ranks {
			in, _ := r.memory(pattern(i, n))
			var out fabric.DevPtr
			out, outs[i] = r.memory(make([]byte, 2*n))
			require.NoError(t, r.AllGather(r.s, out, in, n))
		}
		for i, r := range ranks {
			r.wait(t)
			assert.Equal(t, want, outs[i], "rank %d, %d bytes", i, n)
		}
	}
}

// Copies take their time: neither the wire nor the stream goes on before one has landed.
func TestCopiesAreWaitedFor(t *testing.T) {
	ranks := openRanks(t, 2, func(_ int, c *stage.Config, d *double) {
		c.PartBytes, d.slow = 64, 3*time.Millisecond
	})
	outs := make([][]byte, 2)
	for i, r := range ranks {
		in, _ := r.memory(pattern(i, 200))
		var out fabric.DevPtr
		out, outs[i] = r.memory(make([]byte, 400))
		require.NoError(t, r.AllGather(r.s, out, in, 200))
	}
	for i, r := range ranks {
		r.wait(t)
		assert.Equal(t, append(pattern(0, 200), pattern(1, 200)...), outs[i])
	}
}

// While a part is on its way up, the next one is on the wire and the one after that comes down.
func TestPartsOverlap(t *testing.T) {
	const parts, slow = 16, 20 * time.Millisecond
	ranks := openRanks(t, 2, func(_ int, c *stage.Config, d *double) {
		c.PartBytes, d.slow = 64, slow
	})
	began := time.Now()
	for i, r := range ranks {
		in, _ := r.memory(pattern(i, 64*parts))
		require.NoError(t, r.AllReduce(r.s, in, in, 64*parts, fabric.U8, fabric.Sum))
	}
	for _, r := range ranks {
		r.wait(t)
	}
	assert.Less(t, time.Since(began), 2*parts*slow-4*slow, "down and up one after the other take %v", 2*parts*slow)
}

// A call in two parts never pairs with two whole calls of half its size, though every byte on the wire has the same place.
func TestAPartIsNoCall(t *testing.T) {
	ranks := openRanks(t, 2, func(r int, c *stage.Config, _ *double) { c.PartBytes = 64 })
	a, _ := ranks[0].memory(make([]byte, 128))
	b, _ := ranks[1].memory(make([]byte, 128))
	require.NoError(t, ranks[0].Broadcast(ranks[0].s, a, 128, 0))
	require.NoError(t, ranks[1].Broadcast(ranks[1].s, b, 64, 0))
	_ = ranks[1].Broadcast(ranks[1].s, b+64, 64, 0)
	err := ranks[1].Wait(t.Context(), ranks[1].s)
	require.ErrorIs(t, err, fabric.ErrDesync)
	require.ErrorContains(t, err, "128 bytes")
}

// What a rank does not know of another's layout is compared all the same.
func TestLayoutsThatOnlyDifferWhole(t *testing.T) {
	for name, call := range map[string]func(r *rank, i int, p fabric.DevPtr) error{
		"rows": func(r *rank, i int, p fabric.DevPtr) error {
			return r.AllGatherRows(r.s, p, p+1024, 128, []int{64, 128}[i])
		},
		"lengths": func(r *rank, i int, p fabric.DevPtr) error {
			return r.AllGatherV(r.s, p, p+1024, 128, [][]int{{64, 10}, {100, 10}}[i])
		},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := openRanks(t, 2, func(r int, c *stage.Config, _ *double) { c.PartBytes = 64 })
			for i, r := range ranks {
				p, _ := r.memory(make([]byte, 2048))
				_ = call(r, i, p)
			}
			for _, r := range ranks {
				require.ErrorIs(t, r.Wait(t.Context(), r.s), fabric.ErrDesync)
			}
		})
	}
}
