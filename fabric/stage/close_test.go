package stage_test

import (
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stream that the engine has destroyed has passed all that was on it: to destroy it was to wait for it.
func TestAStreamThatIsGoneHoldsUpNoClose(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		w := hiptest.Start(t, hiptest.Settings{Devices: 1})
		ranks := openHIP(t, w, 1, stage.Config{Gate: gate}, nil)
		own, err := ranks[0].d.NewStream(hipgo.StreamNonBlocking)
		require.NoError(t, err)
		require.NoError(t, ranks[0].Barrier(fabric.Stream(own.Raw())))
		require.NoError(t, own.Close())
		require.ErrorIs(t, ranks[0].Barrier(fabric.Stream(own.Raw())), fabric.ErrInvalid)
		require.ErrorIs(t, ranks[0].Wait(t.Context(), fabric.Stream(own.Raw())), fabric.ErrInvalid)
		began := time.Now()
		done(t, ranks)
		assert.Less(t, time.Since(began), 3*time.Second)
		require.NoError(t, w.Close())
	}
}

// A stream that is held has not passed the group's words: they are kept until it has.
func TestAHeldStreamKeepsTheWords(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 1})
	ranks := openHIP(t, w, 1, stage.Config{}, nil)
	release, err := ranks[0].hold()
	require.NoError(t, err)
	require.NoError(t, ranks[0].Barrier(ranks[0].stream()))
	err = ranks[0].Close()
	require.ErrorIs(t, err, fabric.ErrDevice)
	require.ErrorContains(t, err, "its streams have not passed the calls that were queued on them")
	release()
	require.NoError(t, ranks[0].s.Synchronize(t.Context()))
	require.NoError(t, ranks[0].close())
	require.Eventually(t, func() bool { return w.Leaks() == "" }, 10*time.Second, time.Millisecond, "freed once it has passed")
}
