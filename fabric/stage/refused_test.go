package stage_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/require"
)

// What HIP says of an engine's pointer refuses the call by name, and the group goes on.
func TestHIPMemoryIsRefusedByName(t *testing.T) {
	const n = 300
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{})
			ranks := openHIP(t, w, 1, stage.Config{Gate: gate}, nil)
			r := ranks[0]
			good, err := r.alloc(n)
			require.NoError(t, err)
			small, err := r.alloc(n - 1)
			require.NoError(t, err)
			freed, err := r.alloc(n)
			require.NoError(t, err)
			require.NoError(t, r.free(freed))
			heap := make([]byte, n)
			goHeap := fabric.DevPtr(unsafe.Pointer(unsafe.SliceData(heap)))
			for name, bad := range map[string]fabric.DevPtr{"too small": small, "freed": freed, "Go heap": goHeap} {
				t.Run(name, func(t *testing.T) {
					err := r.AllReduce(r.stream(), good, bad, n, fabric.U8, fabric.Sum)
					require.ErrorIs(t, err, fabric.ErrInvalid)
					require.ErrorContains(t, err, fmt.Sprintf("in, %d bytes at %#x, is no memory of", n, uintptr(bad)))
					err = r.AllReduce(r.stream(), bad, good, n, fabric.U8, fabric.Sum)
					require.ErrorIs(t, err, fabric.ErrInvalid)
					require.ErrorContains(t, err, fmt.Sprintf("out, %d bytes at %#x, is no memory of", n, uintptr(bad)))
					require.ErrorContains(t, err, r.d.Seam().String())
				})
			}
			require.NoError(t, r.AllReduce(r.stream(), good, good, n, fabric.U8, fabric.Sum))
			require.NoError(t, r.Wait(t.Context(), r.stream()))
			done(t, ranks)
		})
	}
}
