package stage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stream of another device is refused by name before anything is on it, and the group goes on: more refusals than there
// are slots take none of them. Up to HIP 6 the stream operations themselves take such a stream.
func TestAStreamOfAnotherDeviceIsRefused(t *testing.T) {
	for _, c := range []struct {
		gate stage.Gate
		hip  string
	}{
		{stage.Words, ""}, {stage.Words, "6.2.41134"}, {stage.Words, "5.7.31921"}, {stage.Kernels, ""}, {stage.Kernels, "6.2.41134"},
	} {
		gate := c.gate
		t.Run(fmt.Sprint(gate, " ", c.hip), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 2, HIP: c.hip})
			ranks := openHIP(t, w, 1, stage.Config{Gate: gate, PartBytes: 64, Timeout: 5 * time.Second}, nil)
			defer done(t, ranks)
			r, n := ranks[0], 200
			other, err := w.Device(1).NewStream(hipgo.StreamNonBlocking)
			require.NoError(t, err)
			both, err := r.alloc(2 * n)
			require.NoError(t, err)
			out := both + fabric.DevPtr(n)
			require.NoError(t, r.upload(both, pattern(0, n)))
			for range 1100 {
				err := r.AllGatherV(fabric.Stream(other.Raw()), out, both, n, []int{n})
				require.ErrorIs(t, err, fabric.ErrInvalid)
				require.ErrorContains(t, err, fmt.Sprintf("stream %#x", other.Raw()))
			}
			require.NoError(t, r.AllGatherV(r.stream(), out, both, n, []int{n}))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			require.NoError(t, r.Wait(ctx, r.stream()))
			got := make([]byte, n)
			require.NoError(t, r.download(got, out))
			assert.Equal(t, pattern(0, n), got)
			passed, err := other.Query()
			require.NoError(t, err)
			assert.True(t, passed, "and nothing is on it")
			require.NoError(t, other.Close())
			require.NoError(t, r.Barrier(r.stream()))
			require.NoError(t, r.Wait(ctx, r.stream()))
		})
	}
}
