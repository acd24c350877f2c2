//go:build cgo && linux

package hiptest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func stream(t *testing.T, d *hipgo.Device) hipgo.Stream {
	s, err := d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func masked(t *testing.T, d *hipgo.Device) hipgo.Stream {
	s, err := d.NewStreamCUMask(nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func pinned(t *testing.T, d *hipgo.Device, n int) *hipgo.HostBuffer {
	b, err := d.HostMalloc(n)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func onDevice(t *testing.T, d *hipgo.Device, n int) *hipgo.Buffer {
	b, err := d.Malloc(n)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func settle(t *testing.T, w *hiptest.World) {
	require.NoError(t, w.Settle(30*time.Second))
}

func done(t *testing.T, s hipgo.Stream) bool {
	ready, err := s.Query()
	require.NoError(t, err)
	return ready
}

func sync(t *testing.T, s hipgo.Stream) {
	require.NoError(t, s.Synchronize(within(t, 30*time.Second)))
}

func high(t *testing.T, d *hipgo.Device) hipgo.Stream {
	s, err := d.NewStreamPriority(-1)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Six parked streams on four hardware queues: who still moves?
func TestSixParkedStreamsHoldUpWhoeverSharesTheirQueues(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings hiptest.Settings
		make     func(*testing.T, *hipgo.Device) hipgo.Stream
		moves    bool
	}{
		{"normal", hiptest.Settings{}, stream, false},
		{"high priority", hiptest.Settings{}, high, true},
		{"high priority, ignored", hiptest.Settings{IgnorePriority: true}, high, false},
		{"CU mask", hiptest.Settings{}, masked, true},
		{"CU mask, one hardware queue", hiptest.Settings{HWQueues: 1}, masked, true},
		{"normal of eight hardware queues", hiptest.Settings{HWQueues: 8}, stream, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := hiptest.Start(t, c.settings)
			words := pinned(t, w.Device(0), 4096).Words()
			for i := range 6 {
				require.NoError(t, stream(t, w.Device(0)).WaitValue64(words.Addr(i), 1, hipgo.ConditionGte, ^uint64(0)))
			}
			s := c.make(t, w.Device(0))
			require.NoError(t, s.WriteValue64(words.Addr(100), 1))
			settle(t, w)
			assert.Equal(t, c.moves, words.Load(100) == 1)
			assert.Equal(t, c.moves, done(t, s))
			for i := range 6 {
				words.Store(i, 1)
			}
			sync(t, s)
			assert.Equal(t, uint64(1), words.Load(100))
		})
	}
}

// The wrong design: two ranks' copies on the streams that also wait.
func TestACopyBehindAWaitBlocksTheRingAbove16KiB(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings hiptest.Settings
		bytes    int
		hangs    bool
	}{
		{"one ring, 16,384 bytes", hiptest.Settings{SDMARings: 1}, 16384, false},
		{"one ring, 16,385 bytes", hiptest.Settings{SDMARings: 1}, 16385, true},
		{"one ring, 4,096 bytes under HIP 6", hiptest.Settings{SDMARings: 1, HIP: "6.2.41134"}, 4096, true},
		{"two rings, one rank ahead, 16,384 bytes", hiptest.Settings{}, 16384, false},
		{"two rings, one rank ahead, 16,385 bytes", hiptest.Settings{}, 16385, true},
		{"two rings, one rank ahead, blits up to 1 MiB", hiptest.Settings{BlitBytes: 1 << 20}, 65536, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			const calls = 8
			w := hiptest.Start(t, c.settings)
			words := pinned(t, w.Device(0), 4096).Words()
			var streams [2]hipgo.Stream
			for rank := range 2 {
				s := stream(t, w.Device(0))
				streams[rank] = s
				slab, memory := pinned(t, w.Device(0), c.bytes), onDevice(t, w.Device(0), c.bytes)
				for call := uint64(1); call <= calls; call++ {
					require.NoError(t, s.Copy(slab.Ptr(), memory.Ptr(), c.bytes, hipgo.CopyDeviceToHost))
					require.NoError(t, s.WriteWait(words.Addr(rank), call, words.Addr(2+rank), call))
					require.NoError(t, s.Copy(memory.Ptr(), slab.Ptr(), c.bytes, hipgo.CopyHostToDevice))
				}
			}
			hung := false
			for call := uint64(1); call <= calls && !hung; call++ {
				settle(t, w)
				hung = words.Load(0) < call || words.Load(1) < call
				if !hung { // both are ready, so the host answers both
					words.Store(2, call)
					words.Store(3, call)
				}
			}
			assert.Equal(t, c.hangs, hung)
			if hung {
				assert.Regexp(t, `SDMA ring \d+ \(0 streams\): operation \d+ hipMemcpyAsync of \d+ bytes of stream .* waits for operation`, w.Parked())
				assert.Regexp(t, `hipStreamWaitValue64 of stream .* waits until the 64-bit word at .* >= \d+; it is \d+; \d+ behind it`, w.Parked())
			}
			words.Store(2, calls)
			words.Store(3, calls)
			sync(t, streams[0])
			sync(t, streams[1])
			assert.Empty(t, w.Parked())
		})
	}
}

func TestAHeldQueueStepsAndIsReleased(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	words := pinned(t, w.Device(0), 4096).Words()
	s := stream(t, w.Device(0))
	q := w.Queue(s)
	require.NoError(t, q.Hold())
	for i := uint64(1); i <= 5; i++ {
		require.NoError(t, s.WriteValue64(words.Addr(0), i))
	}
	for i := range uint64(4) {
		settle(t, w)
		assert.Equal(t, i, words.Load(0))
		require.NoError(t, q.Step(1))
	}
	settle(t, w)
	assert.Contains(t, w.Parked(), "is held; 0 behind it")
	require.NoError(t, q.Release())
	sync(t, s)
	trace := w.Trace()
	require.Len(t, trace, 5)
	for i, op := range trace {
		assert.Equal(t, "StreamWriteValue64", op.Name)
		assert.Equal(t, uint64(i+1), op.Value)
		assert.Equal(t, words.Addr(0), op.Address)
		assert.Equal(t, s.Raw(), op.Stream)
		assert.Equal(t, q.Number(), op.Queue)
		assert.LessOrEqual(t, op.Queued, op.Start)
		assert.LessOrEqual(t, op.Start, op.End)
	}
	assert.NotEqual(t, w.Ring(0, 0), w.Ring(0, 1))
	assert.Error(t, w.Ring(0, 2).Hold())
}

func TestAHeldRingHoldsCopiesAndNothingElse(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{SDMARings: 1})
	d := w.Device(0)
	slab, memory := pinned(t, d, 1<<17), onDevice(t, d, 1<<17)
	s, other := masked(t, d), masked(t, d)
	ring := w.Ring(0, 0)
	require.NoError(t, ring.Hold())
	require.NoError(t, s.Copy(memory.Ptr(), slab.Ptr(), 1<<17, hipgo.CopyDefault))
	require.NoError(t, other.Copy(memory.Ptr(), slab.Ptr(), 16384, hipgo.CopyDefault))
	settle(t, w)
	assert.False(t, done(t, s))
	assert.True(t, done(t, other))
	require.NoError(t, ring.Release())
	sync(t, s)
	trace := w.Trace()
	assert.False(t, trace[0].Ring)
	assert.True(t, trace[1].Ring)
	assert.Equal(t, 1<<17, trace[1].Bytes)
}

func TestModelledCopiesTakeTheirTime(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{CopyLatency: 3 * time.Millisecond, CopyBandwidth: 100_000_000})
	d := w.Device(0)
	slab, memory := pinned(t, d, 1<<20), onDevice(t, d, 1<<20)
	s := stream(t, d)
	require.NoError(t, s.Copy(memory.Ptr(), slab.Ptr(), 1_000_000, hipgo.CopyDefault))
	require.NoError(t, s.Copy(memory.Ptr(), slab.Ptr(), 100, hipgo.CopyDefault))
	sync(t, s)
	trace := w.Trace()
	assert.GreaterOrEqual(t, trace[0].End-trace[0].Start, 13*time.Millisecond)
	assert.GreaterOrEqual(t, trace[1].End-trace[1].Start, 3*time.Millisecond)
	assert.Less(t, trace[1].End-trace[1].Start, 300*time.Millisecond)
}

func TestOnlyTheHostReleasesWhereTheProfileSaysSo(t *testing.T) {
	for _, hostOnly := range []bool{false, true} {
		t.Run(fmt.Sprint(hostOnly), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{HostReleases: hostOnly})
			words := pinned(t, w.Device(0), 4096).Words()
			s, other := masked(t, w.Device(0)), masked(t, w.Device(0))
			require.NoError(t, s.WaitValue64(words.Addr(0), 5, hipgo.ConditionGte, ^uint64(0)))
			settle(t, w)
			require.NoError(t, other.WriteValue64(words.Addr(0), 5))
			sync(t, other)
			settle(t, w)
			assert.Equal(t, uint64(5), words.Load(0))
			assert.Equal(t, !hostOnly, done(t, s))
			words.Store(0, 6)
			sync(t, s)
		})
	}
}
