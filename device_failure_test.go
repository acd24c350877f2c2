//go:build linux && cgo

package hipfabric

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// couple is two ranks with a device each, and memory for a gather.
type couple struct {
	mu     sync.Mutex
	world  *hiptest.World
	ranks  []*rank
	memory []*hipgo.Buffer
}

func newCouple(t *testing.T, change func(*Config)) *couple {
	t.Helper()
	return coupleOn(t, hiptest.Start(t, hiptest.Settings{Devices: 2}), change)
}

func coupleOn(t *testing.T, world *hiptest.World, change func(*Config)) *couple {
	t.Helper()
	c := &couple{world: world}
	c.ranks = staged(t, opened(t, 2, change), gpus([]*hipgo.Device{c.world.Device(0), c.world.Device(1)}, stage.Words))
	for r := range c.ranks {
		memory, err := c.world.Device(r).Malloc(4096)
		require.NoError(t, err)
		c.memory = append(c.memory, memory)
	}
	return c
}

// queue queues a gather of bytes on a rank's stream.
func (c *couple) queue(r, bytes int) error {
	at := fabric.DevPtr(c.memory[r].Ptr())
	return c.ranks[r].calls.AllGather(c.ranks[r].raw(), at+1024, at, bytes)
}

// runsOn says that no stream stays parked.
func (c *couple) runsOn(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return c.world.Parked() == "" }, 20*time.Second, time.Millisecond, "parked: %s", c.world.Parked())
}

// end closes everything, and checks that no stream stays parked.
func (c *couple) end(t *testing.T) {
	t.Helper()
	c.runsOn(t)
	for r := range c.ranks {
		assert.NoError(t, c.ranks[r].Close(t.Context()))
		assert.NoError(t, c.ranks[r].stream.Close())
		assert.NoError(t, c.memory[r].Close())
	}
}

func (c *couple) wait(t *testing.T, r int) error {
	return c.ranks[r].calls.Wait(t.Context(), c.ranks[r].raw())
}

func TestAnAbortReachesCallsOnDeviceMemoryAndTheirStreamsRunOn(t *testing.T) {
	c := newCouple(t, nil)
	for range 3 {
		require.NoError(t, c.queue(0, 16)) // rank 1 never comes
	}
	c.ranks[1].Abort(errors.New("no more tokens"))
	for r := range 2 {
		err := c.wait(t, r)
		require.ErrorIs(t, err, fabric.ErrAborted)
		assert.ErrorContains(t, err, "no more tokens")
		require.ErrorIs(t, c.queue(r, 16), fabric.ErrAborted)
		require.ErrorIs(t, c.ranks[r].Host().Barrier(), fabric.ErrAborted)
	}
	c.end(t)
}

func TestAFailureOnDeviceMemoryEndsTheGroupWithOneCause(t *testing.T) {
	var log logs
	c := newCouple(t, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	waiting := make(chan error, 1)
	go func() { waiting <- c.ranks[0].Host().Recv(make([]byte, 8), 1) }()
	require.NoError(t, errors.Join(each(2, func(r int) error { return c.queue(r, 16*(1+r)) })...))
	for r := range 2 {
		err := c.wait(t, r)
		require.ErrorIs(t, err, fabric.ErrDesync)
		cause := ended(t, c.ranks[r].Group)
		assert.Equal(t, "default/device", cause.Group)
		assert.ErrorIs(t, cause.Kind, fabric.ErrDesync)
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, []any{"all-gather", "staged", "default/device", r}, []any{op.Op, op.Path, op.Group, op.Rank})
	}
	require.ErrorIs(t, <-waiting, fabric.ErrDesync)
	c.end(t)
	found := log.records(t, "flight records")
	require.Len(t, found, 1)
	ranks := found[0]["ranks"].(map[string]any)
	for _, r := range []string{"0", "1"} {
		assert.Contains(t, ranks[r], "in default/device: all-gather seq 1")
	}
	assert.Equal(t, "seq 1: ranks 0: all-gather of 16 bytes; ranks 1: all-gather of 32 bytes", found[0]["disagree"])
}

func TestALostDeviceIsADeviceErrorOnAllRanks(t *testing.T) {
	world, err := hiptest.New(hiptest.Settings{Devices: 2}) // a lost device takes nothing back: Start would find that
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.Close() })
	c := coupleOn(t, world, nil)
	require.NoError(t, errors.Join(each(2, func(r int) error { return errors.Join(c.queue(r, 16), c.wait(t, r)) })...))
	require.NoError(t, c.queue(0, 16))
	require.NoError(t, c.world.Fail(hiptest.Fault{Lost: true, Device: 1}))
	_ = c.queue(1, 16) // says so now, or at the wait
	for r := range 2 {
		err := c.wait(t, r)
		require.ErrorIs(t, err, fabric.ErrDevice, "rank %d", r)
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, fabric.ScopeDevice, op.Scope())
	}
	c.runsOn(t)
	closeAll([]*Group{c.ranks[0].Group, c.ranks[1].Group})
	for r := range 2 {
		_ = c.ranks[r].stream.Close()
		_ = c.memory[r].Close()
	}
}

// What the kernels gate asks of HIP when it opens fails in turn, on one rank: that is the device's failure on all of them, and the group
// goes on without its device.
func TestAFailureWhileTheKernelsGateOpensIsTheSameOnAllRanks(t *testing.T) {
	for _, call := range []string{"hipModuleLoadData", "hipModuleGetFunction", "hipMalloc", "hipMemsetAsync", "hipHostMalloc", "hipEventCreateWithFlags"} {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprint(call, " ", nth), func(t *testing.T) {
				world := hiptest.Start(t, hiptest.Settings{Devices: 2})
				groups := opened(t, 2, nil)
				require.NoError(t, world.Fail(hiptest.Fault{Call: call, Nth: nth, Code: 719}))
				errs := each(2, func(r int) error {
					_, err := groups[r].Device(t.Context(), GPU{Device: world.Device(r), Gate: stage.Kernels})
					return err
				})
				if nth == 3 && errs[0] == nil { // two ranks ask twice
					require.NoError(t, errs[1])
				} else {
					var first, second *fabric.Cause
					require.ErrorAs(t, errs[0], &first)
					require.ErrorAs(t, errs[1], &second)
					assert.Equal(t, first.Text, second.Text)
					for _, err := range errs {
						assertDeviceError(t, err, fabric.ErrDevice, call+": hipErrorLaunchFailure (719)", "could not open its device", "gfx1151")
					}
				}
				for r, err := range each(2, func(r int) error { return groups[r].Host().Barrier() }) {
					require.NoError(t, err, "rank %d goes on", r)
				}
				require.NoError(t, errors.Join(closeAll(groups)...))
			})
		}
	}
}

func TestCloseReleasesStreamsWithQueuedCalls(t *testing.T) {
	c := newCouple(t, nil)
	for range 5 {
		require.NoError(t, c.queue(0, 16))
	}
	waited := make(chan error, 1)
	go func() { waited <- c.wait(t, 0) }()
	require.NoError(t, c.ranks[0].Close(t.Context()))
	require.ErrorIs(t, <-waited, fabric.ErrClosed)
	require.ErrorIs(t, c.queue(0, 16), fabric.ErrClosed)
	err := errors.Join(c.queue(1, 16), c.queue(1, 16), c.wait(t, 1)) // rank 0 had entered the first
	require.ErrorIs(t, err, fabric.ErrPeerFailed)
	c.end(t)
}

func TestTheCollectivesOwnCloseLeavesTheGroup(t *testing.T) {
	c := newCouple(t, nil)
	require.NoError(t, errors.Join(each(2, func(r int) error { return errors.Join(c.queue(r, 16), c.wait(t, r), c.ranks[r].calls.Close()) })...))
	require.ErrorIs(t, c.queue(0, 16), fabric.ErrClosed)
	require.NoError(t, errors.Join(each(2, func(r int) error { return c.ranks[r].Host().Barrier() })...))
	_, err := c.ranks[0].Device(t.Context(), GPU{Device: c.world.Device(0)})
	assertDeviceError(t, err, fabric.ErrInvalid, "has its GPU")
	c.end(t)
}

func TestTheStatusShowsTheCallThatAStreamHasReached(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c := newCouple(t, func(c *Config) {
		c.Timeout = NoTimeout
		if c.Rank == 0 {
			c.StatusSocket = socket
		}
	})
	s, err := ReadStatus(t.Context(), socket)
	require.NoError(t, err)
	assert.Equal(t, &DeviceStatus{Gate: "words", Device: c.world.Device(0).String(), Peer: -1, WaitingFor: []int{}}, s.Device)
	require.NoError(t, c.queue(0, 48))
	require.Eventually(t, func() bool {
		s, err = ReadStatus(t.Context(), socket)
		return err == nil && len(s.Device.WaitingFor) == 1 && len(s.Ranks) == 2 && len(s.Ranks[0].WaitingFor) == 1 // the heartbeat comes later
	}, 20*time.Second, 10*time.Millisecond)
	assert.Equal(t, []any{true, "all-gather", uint64(1), 48, []int{1}}, []any{s.Device.Running, s.Device.Op, s.Device.Seq, s.Device.CallBytes, s.Device.WaitingFor})
	assert.Equal(t, []any{true, "all-gather", "default/device", []int{1}}, []any{s.Ranks[0].Running, s.Ranks[0].Op, s.Ranks[0].Group, s.Ranks[0].WaitingFor}, "and the others hear it by the heartbeat")
	assert.Equal(t, "words", s.Paths[1].Gate)
	require.NoError(t, c.queue(1, 48))
	require.NoError(t, errors.Join(each(2, func(r int) error { return c.wait(t, r) })...))
	s, err = ReadStatus(t.Context(), socket)
	require.NoError(t, err)
	assert.Equal(t, []any{false, uint64(1), uint64(48)}, []any{s.Device.Running, s.Device.Calls, s.Device.Bytes})
	c.end(t)
}

func TestADeviceInProgressEndsWithTheGroup(t *testing.T) {
	all := devices(t, 2, hiptest.Settings{})
	groups := opened(t, 2, nil)
	failed := make(chan error, 1)
	go func() {
		_, err := groups[0].Device(t.Context(), GPU{Device: all[0]}) // rank 1 never comes
		failed <- err
	}()
	require.Eventually(t, func() bool {
		return !groups[0].splitting.TryLock() || func() bool { groups[0].splitting.Unlock(); return false }()
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, groups[0].Close(t.Context()))
	require.Error(t, <-failed)
	require.NoError(t, groups[1].Close(t.Context()))
}

// What Device's documentation warns of: the engine's own copy takes the ring that the call's copies need.
func TestALargeCopyQueuedBehindACallEndsTheGroupInsteadOfHangingIt(t *testing.T) {
	c := newCouple(t, func(c *Config) { c.Timeout = time.Second })
	const bytes = 64 << 10
	var memory []*hipgo.Buffer
	var host []*hipgo.HostBuffer
	errs := each(2, func(r int) error {
		m, err := c.ranks[r].device.Malloc(3 * bytes)
		h, hostErr := c.ranks[r].device.HostMalloc(2 * bytes)
		if err := errors.Join(err, hostErr); err != nil {
			return err
		}
		c.mu.Lock()
		memory, host = append(memory, m), append(host, h)
		c.mu.Unlock()
		at := fabric.DevPtr(m.Ptr())
		return errors.Join(c.ranks[r].calls.AllGather(c.ranks[r].raw(), at+bytes, at, bytes),
			c.ranks[r].stream.Copy(h.Ptr(), m.Ptr()+bytes, 2*bytes, hipgo.CopyDeviceToHost))
	})
	require.NoError(t, errors.Join(errs...))
	for r := range 2 {
		err := c.wait(t, r)
		require.ErrorIs(t, err, fabric.ErrDevice)
		assert.ErrorContains(t, err, "has not landed within 875ms")
	}
	c.end(t)
	for i := range memory {
		require.NoError(t, errors.Join(memory[i].Close(), host[i].Close()))
	}
}
