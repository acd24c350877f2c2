package stage_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hasty has kernels that wait a millisecond or two, not a thousand timeouts.
type hasty struct{ *hipgo.Seam }

func (h hasty) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	binary.NativeEndian.PutUint64(args[stage.ArgTimeout:], 1)
	return h.Seam.Launch(stream, function, blocks, threads, args)
}

// A kernel that waits for longer than it may gives up, and its stream runs on; the group hears it, though nobody else has failed.
func TestAKernelThatGivesUpEndsTheGroup(t *testing.T) {
	const timeout = time.Minute
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	ranks := openHIP(t, w, 2, stage.Config{Gate: stage.Kernels, PartBytes: 64, Timeout: timeout}, func(r int, c *stage.Config) {
		if r == 0 {
			c.Driver = hasty{c.Driver.(*hipgo.Seam)}
		}
	})
	defer done(t, ranks)
	began := time.Now()
	p, err := ranks[0].alloc(96)
	require.NoError(t, err)
	require.NoError(t, ranks[0].AllGather(ranks[0].stream(), p+32, p, 32)) // rank 1 never comes
	require.NoError(t, ranks[0].s.Synchronize(t.Context()), "the kernel ends by itself")
	for i, r := range ranks {
		require.Eventually(t, func() bool { return r.Check() != nil }, timeout/4, time.Millisecond, "rank %d", i)
		err := r.Wait(t.Context(), r.stream())
		require.ErrorIs(t, err, fabric.ErrTimeout, "rank %d", i)
		require.ErrorContains(t, err, fmt.Sprintf("rank 0: the kernel at sequence 1 of %v gave up, reason 3", ranks[0].d))
		require.NoError(t, fabrictest.WalkError(err))
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, 0, op.Peer)
		assert.Equal(t, fabric.ScopeGroup, op.Scope())
	}
	assert.Less(t, time.Since(began), timeout/2)
}
