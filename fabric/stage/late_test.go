package stage_test

import (
	"context"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stream that comes to its wait when the word has gone through the ring again finds more there, and passes.
func TestAStreamThatIsLateToItsWaitPasses(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ranks := openHIP(t, w, 1, stage.Config{Gate: stage.Words, PartBytes: 64}, nil)
	defer done(t, ranks)
	r := ranks[0]
	other, err := r.d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	late, onTime := w.Queue(r.s), fabric.Stream(other.Raw())
	require.NotEqual(t, late.Number(), w.Queue(other).Number())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, r.Barrier(r.stream())) // a stream's first call puts more on it
	require.NoError(t, r.Wait(ctx, r.stream()))
	require.NoError(t, late.Hold())
	require.NoError(t, r.Barrier(r.stream()))
	require.NoError(t, late.Step(1)) // the write, not the wait
	for _, calls := range []int{1, 256, 300} {
		for range calls {
			require.NoError(t, r.Barrier(onTime))
		}
		require.NoError(t, r.Wait(ctx, onTime))
	}
	assert.Contains(t, w.Parked(), "is held", "the stream is before its wait")
	require.NoError(t, late.Release())
	require.NoError(t, r.s.Synchronize(ctx))
	require.NoError(t, r.Wait(ctx, r.stream()))
	require.NoError(t, other.Close())
}
