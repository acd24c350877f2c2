//go:build cgo && linux

package hiptest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func instantiate(t *testing.T, s hipgo.Stream) *hipgo.Exec {
	g, err := s.EndCapture()
	require.NoError(t, err)
	x, err := g.Instantiate()
	require.NoError(t, err)
	require.NoError(t, g.Close())
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func TestACapturedGraphReplaysItsCopies(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	d := w.Device(0)
	words, memory, s := pinned(t, d, 4096), onDevice(t, d, 64), stream(t, d)
	require.NoError(t, s.BeginCapture(hipgo.CaptureThreadLocal))
	require.NoError(t, s.Copy(memory.Ptr(), words.Words().Addr(0), 8, hipgo.CopyDefault))
	require.NoError(t, s.Copy(words.Words().Addr(1), memory.Ptr(), 8, hipgo.CopyDefault))
	require.NoError(t, s.Memset(memory.Ptr(), 0, 8))
	x := instantiate(t, s)
	assert.Empty(t, w.Trace(), "nothing has run")
	for i := uint64(1); i <= 50; i++ {
		words.Words().Store(0, i)
		require.NoError(t, x.Launch(s))
		sync(t, s)
		assert.Equal(t, i, words.Words().Load(1))
	}
}

func TestAValueOperationOnACapturingStream(t *testing.T) {
	for _, c := range []struct {
		name             string
		profile          hiptest.CaptureValues
		code             int
		atOnce, replayed bool
	}{
		{"runs at once", hiptest.CaptureRuns, 0, true, false},
		{"is refused", hiptest.CaptureRefuses, 900, false, false},
		{"is recorded", hiptest.CaptureRecords, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Capture: c.profile})
			words, s := pinned(t, w.Device(0), 64).Words(), stream(t, w.Device(0))
			require.NoError(t, s.BeginCapture(hipgo.CaptureRelaxed))
			err := s.WriteValue64(words.Addr(0), 1)
			if c.code == 0 {
				require.NoError(t, err)
			} else {
				assert.Equal(t, c.code, code(t, err))
			}
			settle(t, w)
			assert.Equal(t, c.atOnce, words.Load(0) == 1)
			x := instantiate(t, s)
			words.Store(0, 0)
			require.NoError(t, x.Launch(s))
			sync(t, s)
			assert.Equal(t, c.replayed, words.Load(0) == 1)
		})
	}
}

func TestWhatACaptureForbids(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	d := w.Device(0)
	memory, s, outside := onDevice(t, d, 64), stream(t, d), stream(t, d)
	before, err := d.NewEvent(hipgo.EventDisableTiming)
	require.NoError(t, err)
	t.Cleanup(func() { _ = before.Close() })
	require.NoError(t, before.Record(outside))

	require.NoError(t, s.BeginCapture(hipgo.CaptureRelaxed))
	_, err = s.Query()
	assert.Equal(t, 900, code(t, err))
	status, err := s.Capturing()
	require.NoError(t, err)
	assert.Equal(t, hipgo.CaptureActive, status)
	assert.Equal(t, 905, code(t, s.WaitEvent(before)))
	assert.Equal(t, 901, code(t, s.Memset(memory.Ptr(), 1, 8)))
	_, err = s.EndCapture()
	assert.Equal(t, 901, code(t, err))

	blocking, err := d.NewStream(0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = blocking.Close() })
	require.NoError(t, blocking.BeginCapture(hipgo.CaptureRelaxed))
	assert.Equal(t, 906, code(t, d.WrapStream(0).Memset(memory.Ptr(), 1, 8)))
	_, err = blocking.EndCapture()
	assert.Equal(t, 901, code(t, err))
}
