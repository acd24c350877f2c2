//go:build cgo && linux

package hiptest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const (
	within30 = 30 * time.Second
	tick     = time.Millisecond
)

func b0(b *hipgo.Buffer) uintptr { return b.Ptr() }

func code(t *testing.T, err error) int {
	var e *hipgo.Error
	require.ErrorAs(t, err, &e)
	return e.Code
}

func TestTheNthCallFails(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	d := w.Device(0)
	require.NoError(t, w.Fail(hiptest.Fault{Call: "hipMalloc", Nth: 2, Times: 2, Code: 2}))
	for i := 1; i <= 5; i++ {
		b, err := d.Malloc(8)
		if i == 2 || i == 3 {
			assert.Equal(t, 2, code(t, err))
			continue
		}
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
	require.NoError(t, w.Fail(hiptest.Fault{Call: "hipStreamCreateWithFlags", Times: -1, Code: 999}))
	for range 3 {
		_, err := d.NewStream(hipgo.StreamNonBlocking)
		assert.Equal(t, 999, code(t, err))
	}
	require.Error(t, w.Fail(hiptest.Fault{Call: "hipNoSuch", Code: 1}))
	require.Error(t, w.Fail(hiptest.Fault{}))
	require.Error(t, w.Fail(hiptest.Fault{Async: 1, Lost: true}))
	require.Error(t, w.Fail(hiptest.Fault{Call: "hipMalloc"}), "a code is missing")
}

func TestAnOperationThatFailsIsToldLater(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	d := w.Device(0)
	words := pinned(t, d, 4096).Words()
	s := stream(t, d)
	q := w.Queue(s)
	require.NoError(t, q.Hold())
	require.NoError(t, w.Fail(hiptest.Fault{Async: 700, Nth: 2, On: &q}))
	for i := range 3 {
		require.NoError(t, s.WriteValue64(words.Addr(i), 1))
	}
	require.NoError(t, q.Release())
	settle(t, w)
	assert.Equal(t, 700, code(t, s.Synchronize(within(t, within30))))
	_, err := d.Malloc(8)
	assert.Equal(t, 700, code(t, err))
	assert.Equal(t, []uint64{1, 0, 0}, []uint64{words.Load(0), words.Load(1), words.Load(2)})
	assert.Equal(t, 700, w.Trace()[1].Code)
}

func TestCopiesGoWrong(t *testing.T) {
	up := func(t *testing.T, w *hiptest.World, s hipgo.Stream, f hiptest.Fault) (host *hipgo.HostBuffer) {
		d := w.Device(0)
		host = pinned(t, d, 64)
		memory := onDevice(t, d, 64)
		require.NoError(t, s.Memset(memory.Ptr(), 7, 64))
		sync(t, s)
		require.NoError(t, w.Fail(f))
		require.NoError(t, s.Copy(host.Ptr(), memory.Ptr(), 64, hipgo.CopyDeviceToHost))
		return host
	}
	t.Run("dropped", func(t *testing.T) {
		w := hiptest.Start(t, hiptest.Settings{})
		s := stream(t, w.Device(0))
		host := up(t, w, s, hiptest.Fault{Copy: hiptest.CopyDropped})
		sync(t, s)
		assert.Zero(t, host.Bytes()[0])
	})
	t.Run("late", func(t *testing.T) {
		w := hiptest.Start(t, hiptest.Settings{})
		s := stream(t, w.Device(0))
		host := up(t, w, s, hiptest.Fault{Copy: hiptest.CopyLate})
		settle(t, w)
		assert.False(t, done(t, s))
		assert.Zero(t, host.Bytes()[0])
		assert.Contains(t, w.Parked(), "is late")
		w.Land()
		sync(t, s)
		assert.Equal(t, byte(7), host.Bytes()[0])
	})
	t.Run("late by a time", func(t *testing.T) {
		w := hiptest.Start(t, hiptest.Settings{})
		s := stream(t, w.Device(0))
		host := up(t, w, s, hiptest.Fault{Copy: hiptest.CopyLate, Delay: 20 * time.Millisecond})
		sync(t, s)
		assert.Equal(t, byte(7), host.Bytes()[0])
		trace := w.Trace()
		last := trace[len(trace)-1]
		assert.GreaterOrEqual(t, last.End-last.Start, 20*time.Millisecond)
	})
	t.Run("lost", func(t *testing.T) {
		w, err := hiptest.New(hiptest.Settings{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Close() })
		d := w.Device(0)
		host, err := d.HostMalloc(64)
		require.NoError(t, err)
		s, err := d.NewStream(hipgo.StreamNonBlocking)
		require.NoError(t, err)
		require.NoError(t, w.Fail(hiptest.Fault{Copy: hiptest.CopyLost}))
		require.NoError(t, s.Copy(host.Ptr(), host.Ptr()+32, 8, hipgo.CopyDefault))
		settle(t, w)
		assert.False(t, done(t, s))
		assert.Contains(t, w.Parked(), "never ends")
	})
}

func TestAHungQueueHangsAlone(t *testing.T) {
	w, err := hiptest.New(hiptest.Settings{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	d := w.Device(0)
	host, err := d.HostMalloc(4096)
	require.NoError(t, err)
	s, err := d.NewStreamCUMask(nil)
	require.NoError(t, err)
	other, err := d.NewStreamCUMask(nil)
	require.NoError(t, err)
	require.NoError(t, w.Queue(s).Hang())
	require.NoError(t, s.WriteValue64(host.Words().Addr(0), 1))
	require.NoError(t, other.WriteValue64(host.Words().Addr(1), 1))
	sync(t, other)
	settle(t, w)
	assert.Zero(t, host.Words().Load(0))
	assert.False(t, done(t, s))
}

func TestALostDeviceParksNobody(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	d := w.Device(0)
	words := pinned(t, d, 4096).Words()
	memory, slab := onDevice(t, d, 1<<16), pinned(t, d, 1<<16)
	s := stream(t, d)
	require.NoError(t, s.WriteWait(words.Addr(0), 1, words.Addr(1), 1))
	require.NoError(t, s.Copy(memory.Ptr(), slab.Ptr(), 1<<16, hipgo.CopyDefault))
	settle(t, w)
	require.NoError(t, w.Fail(hiptest.Fault{Lost: true, Device: 0}))
	assert.Equal(t, 719, code(t, s.Synchronize(within(t, within30))))
	settle(t, w)
	assert.Empty(t, w.Parked())
	require.NoError(t, w.Device(1).SelfTest(within(t, within30)), "the other device goes on")
}
