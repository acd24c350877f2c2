package stage_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// More streams wait for their groups' calls than the device has hardware queues, and one proxy serves them all. With queues
// of its own it goes on; without, the first calls end by the deadline, saying why, and no stream stays parked.
func TestMoreParkedStreamsThanQueues(t *testing.T) {
	for _, arm := range []struct {
		name     string
		s        hiptest.Settings
		gate     stage.Gate
		priority bool // of the engine's streams
		moves    bool
	}{
		{"the proxy has queues of its own", hiptest.Settings{}, stage.Words, false, true},
		{"the proxy shares the engine's", hiptest.Settings{Missing: []string{"hipExtStreamCreateWithCUMask"}}, stage.Words, false, false},
		{"the engine's are of high priority", hiptest.Settings{Missing: []string{"hipExtStreamCreateWithCUMask"}}, stage.Words, true, true},
		{"priorities are ignored", hiptest.Settings{Missing: []string{"hipExtStreamCreateWithCUMask"}, IgnorePriority: true}, stage.Words, true, false},
		{"kernels copy by themselves", hiptest.Settings{Missing: []string{"hipExtStreamCreateWithCUMask"}}, stage.Kernels, false, true},
	} {
		t.Run(arm.name, func(t *testing.T) {
			arm.s.Devices, arm.s.HWQueues = 2, 4
			testParked(t, hiptest.Start(t, arm.s), arm.gate, arm.priority, arm.moves)
		})
	}
}

// parkedGroups are more than the queues.
const parkedGroups = 6

func testParked(t *testing.T, w *hiptest.World, gate stage.Gate, priority, moves bool) {
	const n = 32 << 10 // too much for a copy by the stream's own queue
	var proxies [2]*stage.Proxy
	var paths [2][parkedGroups]*fabric.StreamCollective
	var streams [2][parkedGroups]hipgo.Stream
	var memory [2][parkedGroups]*hipgo.Buffer
	for r := range proxies {
		d, err := w.Device(r), error(nil)
		proxies[r], err = stage.NewProxy(d.Seam())
		require.NoError(t, err)
		for g := range parkedGroups {
			memory[r][g], err = d.Malloc(3 * n)
			require.NoError(t, err)
		}
	}
	for g := range parkedGroups {
		net, arbiters := fabrictest.NewNetwork(2), fabrictest.Arbiters(2)
		for r := range proxies {
			path, err := stage.Open(stage.Config{Transport: net.Transport(r), Driver: w.Device(r).Seam(), Gate: gate, Image: mailbox.Image, Arbiter: arbiters[r],
				Proxy: proxies[r], Timeout: time.Second})
			require.NoError(t, err)
			c := fabric.NewStream(path, fabric.Options{Arbiter: arbiters[r]})
			arbiters[r].OnCause(func() { _ = c.Check() })
			paths[r][g] = c
		}
	}
	var starts [2]*hipgo.HostBuffer // every queue has its calls before any of them runs
	for r := range proxies {
		var err error
		starts[r], err = w.Device(r).HostMalloc(8)
		require.NoError(t, err)
		for g := range parkedGroups {
			if priority {
				streams[r][g], err = w.Device(r).NewStreamPriority(-1)
			} else {
				streams[r][g], err = w.Device(r).NewStream(hipgo.StreamNonBlocking)
			}
			require.NoError(t, err)
			require.NoError(t, streams[r][g].WaitValue64(starts[r].Words().Addr(0), 1, hipgo.ConditionGte, math.MaxUint64))
			at := fabric.DevPtr(memory[r][g].Ptr())
			require.NoError(t, paths[r][g].AllGather(fabric.Stream(streams[r][g].Raw()), at, at+2*n, n))
		}
	}
	for _, start := range starts {
		start.Words().Store(0, 1)
	}
	for r := range proxies {
		for g, c := range paths[r] {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			require.NoError(t, streams[r][g].Synchronize(ctx), "rank %d group %d is parked", r, g)
			err := c.Wait(ctx, fabric.Stream(streams[r][g].Raw()))
			cancel()
			switch {
			case moves:
				require.NoError(t, err, "rank %d group %d", r, g)
			case g == 0: // its copy is behind its own wait, or another's
				require.ErrorIs(t, err, fabric.ErrDevice)
				require.ErrorContains(t, err, "GPU_MAX_HW_QUEUES")
			case err != nil:
				assert.True(t, errors.Is(err, fabric.ErrDevice) || errors.Is(err, fabric.ErrTimeout), "%v", err)
			}
		}
	}
	for r, p := range proxies {
		for g, c := range paths[r] {
			assert.NoError(t, c.Close())
			assert.NoError(t, streams[r][g].Close())
			assert.NoError(t, memory[r][g].Close())
		}
		assert.NoError(t, p.Close())
		assert.NoError(t, starts[r].Close())
	}
}
