package hipgo_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestEveryConditionWithAMask(t *testing.T) {
	b := start(t, hiptest.Settings{})
	const top = uint64(1) << 63
	for name, c := range map[string]struct {
		condition        hipgo.Condition
		value, mask      uint64
		parks, released  uint64
		value32, mask32  uint32
		parks32, frees32 uint32
	}{
		"gte is unsigned": {hipgo.ConditionGte, top, ^uint64(0), top - 1, top, 1 << 31, ^uint32(0), 1<<31 - 1, 1 << 31},
		"gte masked":      {hipgo.ConditionGte, 4, 0xf, top | 3, 5, 4, 0xf, 1<<31 | 3, 5},
		"eq masked":       {hipgo.ConditionEq, 0xa0, 0xf0, 0xb5, 0xa7 | top, 0xa0, 0xf0, 0xb5, 0xa7 | 1<<31},
		"and":             {hipgo.ConditionAnd, 0xc, ^uint64(0), top | 3, 8, 0xc, ^uint32(0), 1<<31 | 3, 8},
		"and masked":      {hipgo.ConditionAnd, 0xff, 0x80, 0x7f, 0xff, 0xff, 0x80, 0x7f, 0xff},
		"nor masked":      {hipgo.ConditionNor, 0xf0, 0xff, 0x0f, 0x0e, 0xf0, 0xff, 0x0f, 0x0e},
	} {
		t.Run(name, func(t *testing.T) {
			b.words.Store(0, c.parks)
			b.words.Store(1, uint64(c.parks32))
			require.NoError(t, b.s.WaitValue64(b.words.Addr(0), c.value, c.condition, c.mask))
			require.NoError(t, b.s.WaitValue32(b.words.Addr(1), c.value32, c.condition, c.mask32))
			require.NoError(t, b.s.WriteValue32(b.words.Addr(2), 1))
			stuck := func(word string) {
				t.Helper()
				require.NoError(t, b.Settle(bound))
				ready, err := b.s.Query()
				require.NoError(t, err)
				assert.False(t, ready, word)
			}
			b.words.Store(2, 0)
			stuck("64 bits")
			b.words.Store(0, c.released)
			stuck("32 bits")
			assert.Zero(t, b.words.Load(2), "what comes after a wait waits")
			b.words.Store(1, uint64(c.frees32))
			b.drained(t)
			assert.Equal(t, uint64(1), b.words.Load(2))
		})
	}
}

func TestWritesAreOfTheirWidth(t *testing.T) {
	b := start(t, hiptest.Settings{})
	b.words.Store(0, ^uint64(0))
	b.words.Store(1, ^uint64(0))
	require.NoError(t, b.s.WriteValue64(b.words.Addr(0), 0x1122334455667788))
	require.NoError(t, b.s.WriteValue32(b.words.Addr(1), 0x99aabbcc))
	b.drained(t)
	assert.Equal(t, uint64(0x1122334455667788), b.words.Load(0))
	assert.Equal(t, uint64(0xffffffff99aabbcc), b.words.Load(1))
}

func TestWriteWaitIsAWriteThenAWait(t *testing.T) {
	b := start(t, hiptest.Settings{})
	require.NoError(t, b.s.WriteWait(b.words.Addr(0), 7, b.words.Addr(1), 9))
	require.NoError(t, b.Settle(bound))
	assert.Equal(t, uint64(7), b.words.Load(0))
	b.words.Store(1, 8)
	require.NoError(t, b.Settle(bound))
	ready, err := b.s.Query()
	require.NoError(t, err)
	assert.False(t, ready)
	b.words.Store(1, 10)
	b.drained(t)

	for call, want := range map[string]uint64{"hipStreamWriteValue64": 7, "hipStreamWaitValue64": 8} {
		require.NoError(t, b.Fail(hiptest.Fault{Call: call, Code: 719}))
		err = b.s.WriteWait(b.words.Addr(0), 8, b.words.Addr(1), 9)
		var e *hipgo.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, call, e.Call, "the error says whether the write is queued")
		b.drained(t)
		assert.Equal(t, want, b.words.Load(0))
		b.words.Store(0, 7)
	}
}

func TestSynchronizeEndsWithItsContext(t *testing.T) {
	b := start(t, hiptest.Settings{})
	require.NoError(t, b.s.WaitValue64(b.words.Addr(0), 1, hipgo.ConditionGte, ^uint64(0)))
	e, err := b.d.NewEvent(hipgo.EventDisableTiming)
	require.NoError(t, err)
	require.NoError(t, e.Record(b.s))
	require.ErrorIs(t, b.s.Synchronize(within(t, 20*time.Millisecond)), context.DeadlineExceeded)
	require.ErrorIs(t, e.Synchronize(within(t, 20*time.Millisecond)), context.DeadlineExceeded)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, b.s.Synchronize(gone), context.Canceled)
	b.words.Store(0, 1)
	require.NoError(t, e.Synchronize(within(t, bound)))
	b.drained(t)
	require.NoError(t, b.s.Synchronize(gone), "what has happened needs no time")
	require.NoError(t, e.Close())
}

func TestAnEventOrdersStreamsAndTellsTime(t *testing.T) {
	b := start(t, hiptest.Settings{})
	other, err := b.d.NewStreamCUMask([]uint32{1})
	require.NoError(t, err)
	var events [2]hipgo.Event
	for i := range events {
		events[i], err = b.d.NewEvent(hipgo.EventDefault)
		require.NoError(t, err)
	}
	require.NoError(t, events[0].Record(b.s))
	require.NoError(t, b.s.WaitValue64(b.words.Addr(0), 1, hipgo.ConditionGte, ^uint64(0)))
	require.NoError(t, events[1].Record(b.s))
	require.NoError(t, other.WaitEvent(events[1]))
	require.NoError(t, other.WriteValue64(b.words.Addr(1), 1))
	require.NoError(t, b.Settle(bound))
	assert.Zero(t, b.words.Load(1))
	passed, err := events[1].Query()
	require.NoError(t, err)
	assert.False(t, passed)
	b.words.Store(0, 1)
	require.NoError(t, other.Synchronize(within(t, bound)))
	assert.Equal(t, uint64(1), b.words.Load(1))
	took, err := events[1].Since(events[0])
	require.NoError(t, err)
	assert.Positive(t, took)
	wrapped := b.d.WrapEvent(events[0].Raw())
	passed, err = wrapped.Query()
	require.NoError(t, err)
	assert.True(t, passed)
	require.NoError(t, wrapped.Close())
	for _, e := range events {
		require.NoError(t, e.Close())
		require.NoError(t, e.Close())
		_, err = e.Query()
		require.ErrorIs(t, err, os.ErrClosed)
	}
	require.NoError(t, other.Close())
	require.NoError(t, other.Close())
	require.ErrorIs(t, other.WriteWait(b.words.Addr(0), 1, b.words.Addr(0), 1), os.ErrClosed)
}

func TestAWrappedStreamIsTheEnginesOwn(t *testing.T) {
	b := start(t, hiptest.Settings{})
	s := b.d.WrapStream(b.s.Raw())
	assert.Same(t, b.d, s.Device())
	require.NoError(t, s.WriteValue64(b.words.Addr(0), 3))
	require.NoError(t, s.Close())
	require.NoError(t, s.Synchronize(within(t, bound)), "Close of a wrapped stream closes nothing")
	assert.Equal(t, uint64(3), b.words.Load(0))
	null := b.d.WrapStream(0)
	require.NoError(t, null.WriteValue64(b.words.Addr(0), 4))
	require.NoError(t, null.Synchronize(within(t, bound)))
	assert.Equal(t, uint64(4), b.words.Load(0))
}

func TestStreamsOfEachKindRun(t *testing.T) {
	b := start(t, hiptest.Settings{})
	least, greatest, err := b.d.PriorityRange()
	require.NoError(t, err)
	assert.Greater(t, least, greatest)
	for i, make := range []func() (hipgo.Stream, error){
		func() (hipgo.Stream, error) { return b.d.NewStream(hipgo.StreamDefault) },
		func() (hipgo.Stream, error) { return b.d.NewStreamPriority(greatest) },
		func() (hipgo.Stream, error) { return b.d.NewStreamCUMask(nil) },
		func() (hipgo.Stream, error) { return b.d.NewStreamCUMask([]uint32{3}) },
	} {
		s, err := make()
		require.NoError(t, err)
		require.NoError(t, s.WriteValue64(b.words.Addr(i), 5))
		require.NoError(t, s.Synchronize(within(t, bound)))
		assert.Equal(t, uint64(5), b.words.Load(i))
		require.NoError(t, s.Close())
	}
}

func TestBadCallsAreHIPsErrors(t *testing.T) {
	b := start(t, hiptest.Settings{})
	for what, err := range map[string]error{
		"unknown word":      b.s.WaitValue64(4096, 1, hipgo.ConditionGte, ^uint64(0)),
		"unknown condition": b.s.WaitValue64(b.words.Addr(0), 1, 9, ^uint64(0)),
		"unknown word 32":   b.s.WriteValue32(4096, 1),
		"nowhere to copy":   b.s.Copy(0, b.page.Ptr(), 8, hipgo.CopyDefault),
	} {
		var e *hipgo.Error
		require.ErrorAs(t, err, &e, what)
		assert.Equal(t, 1, e.Code, what)
		assert.Equal(t, b.Runtime().Library(), e.Library)
	}
	b.drained(t)
}
