package stage_test

import (
	"context"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Timeout is for what does not move. A call that moves may take as long as it takes, by either gate.
func TestACallThatMovesDoesNotTimeOut(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 2})
			ranks := openHIP(t, w, 2, stage.Config{Gate: gate, Timeout: 500 * time.Millisecond}, func(_ int, c *stage.Config) {
				slowly(c, 1500*time.Millisecond)
			})
			defer done(t, ranks)
			for _, err := range exercise(t, ranks, 1, 1000) {
				require.NoError(t, err)
			}
		})
	}
}

// A full queue has room again when a call ends, and is patient while one moves.
func TestAFullQueueIsPatientWhileACallMoves(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 1})
			ranks := openHIP(t, w, 1, stage.Config{Gate: gate, Timeout: 500 * time.Millisecond}, func(_ int, c *stage.Config) {
				c.Transport = &wire{Transport: c.Transport, begin: func(c *fabric.Call, p fabric.Pending) fabric.Pending {
					if c.Op == fabric.AllGather {
						return &slow{Pending: p, until: time.Now().Add(1500 * time.Millisecond)}
					}
					return p
				}}
			})
			defer done(t, ranks)
			r := ranks[0]
			both, err := r.alloc(128)
			require.NoError(t, err)
			require.NoError(t, r.AllGather(r.stream(), both+64, both, 64))
			for i := range 600 {
				require.NoError(t, r.Barrier(r.stream()), "call %d", i+2)
			}
			require.NoError(t, r.Wait(t.Context(), r.stream()))
		})
	}
}

// Copies are moves as well, while nothing is on the wire: one call of eight parts.
func TestAFullQueueIsPatientWhileCopiesLand(t *testing.T) {
	ranks := openRanks(t, 1, func(_ int, c *stage.Config, d *double) {
		c.PartBytes, c.Timeout, d.slow = 16, time.Second, 200*time.Millisecond
	})
	r := ranks[0]
	in, _ := r.memory(make([]byte, 128))
	out, _ := r.memory(make([]byte, 128))
	require.NoError(t, r.AllGather(r.s, out, in, 128))
	for i := range 300 {
		require.NoError(t, r.Barrier(r.s), "call %d", i+2)
	}
	r.wait(t)
}

// A full queue in which nothing moves ends the group by the deadline, saying which call no stream has reached.
func TestAFullQueueThatNoStreamReachesTimesOut(t *testing.T) {
	ranks := openRanks(t, 1, func(_ int, c *stage.Config, _ *double) { c.Timeout = 200 * time.Millisecond })
	r := ranks[0]
	require.NoError(t, r.Barrier(r.s))
	r.wait(t)
	release := r.d.hold(uintptr(r.s))
	var err error
	for i := 0; i < 300 && err == nil; i++ {
		err = r.Barrier(r.s)
	}
	require.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorContains(t, err, "as many calls are queued as can be, 256, and none has moved for 225ms: no stream has reached number 2, which is next")
	release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.ErrorIs(t, r.Wait(ctx, r.s), fabric.ErrTimeout)
}
