package hipgo_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestAGraphIsRecordedAndReplayed(t *testing.T) {
	b := start(t, hiptest.Settings{Capture: hiptest.CaptureRecords})
	memory, err := b.d.Malloc(8)
	require.NoError(t, err)
	require.NoError(t, b.s.BeginCapture(hipgo.CaptureRelaxed))
	status, err := b.s.Capturing()
	require.NoError(t, err)
	assert.Equal(t, hipgo.CaptureActive, status)
	_, err = b.s.Query()
	require.ErrorContains(t, err, "hipErrorStreamCaptureUnsupported (900)")
	status, err = b.s.Capturing()
	require.NoError(t, err)
	if status == hipgo.CaptureInvalidated { // as HIP: begin anew
		_, err = b.s.EndCapture()
		require.ErrorContains(t, err, "hipErrorStreamCaptureInvalidated (901)")
		require.NoError(t, b.s.BeginCapture(hipgo.CaptureRelaxed))
	}
	require.NoError(t, b.s.Copy(memory.Ptr(), b.words.Addr(0), 8, hipgo.CopyHostToDevice))
	require.NoError(t, b.s.Copy(b.words.Addr(1), memory.Ptr(), 8, hipgo.CopyDeviceToHost))
	graph, err := b.s.EndCapture()
	require.NoError(t, err)
	assert.NotZero(t, graph.Raw())
	status, err = b.s.Capturing()
	require.NoError(t, err)
	assert.Equal(t, hipgo.CaptureNone, status)

	exec, err := graph.Instantiate()
	require.NoError(t, err)
	assert.NotZero(t, exec.Raw())
	require.NoError(t, graph.Close())
	require.NoError(t, graph.Close())
	_, err = graph.Instantiate()
	require.ErrorIs(t, err, os.ErrClosed)
	for i := range uint64(100) {
		b.words.Store(0, i)
		require.NoError(t, exec.Launch(b.s))
		b.drained(t)
		require.Equal(t, i, b.words.Load(1))
	}
	require.NoError(t, exec.Close())
	require.NoError(t, exec.Close())
	require.ErrorIs(t, exec.Launch(b.s), os.ErrClosed)
	require.NoError(t, memory.Close())
	_, err = b.s.EndCapture()
	require.ErrorContains(t, err, "hipStreamEndCapture")
}

func TestAGlobalCaptureOutlivesOurAllocations(t *testing.T) {
	b := start(t, hiptest.Settings{})
	e, err := b.d.NewEvent(hipgo.EventDisableTiming)
	require.NoError(t, err)
	require.NoError(t, b.s.BeginCapture(hipgo.CaptureGlobal))
	failed := make(chan error)
	go func() { // the engine captures, and another goroutine opens a group
		failed <- func() error {
			memory, err := b.d.Malloc(64)
			if err != nil {
				return err
			}
			pinned, err := b.d.HostMalloc(64)
			if err != nil {
				return err
			}
			if _, err = e.Query(); err != nil {
				return err
			}
			if err = pinned.Close(); err != nil {
				return err
			}
			return memory.Close()
		}()
	}()
	require.NoError(t, <-failed)
	status, err := b.s.Capturing()
	require.NoError(t, err)
	assert.Equal(t, hipgo.CaptureActive, status)
	graph, err := b.s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, graph.Close())
	require.NoError(t, e.Close())
}

func TestValueOperationsOfACapturingStreamDoWhatTheRuntimeDoes(t *testing.T) {
	for capture, at := range map[hiptest.CaptureValues][2]uint64{
		hiptest.CaptureRuns: {1, 1}, hiptest.CaptureRefuses: {0, 0}, hiptest.CaptureRecords: {0, 1},
	} {
		t.Run(hiptest.Settings{Capture: capture}.String(), func(t *testing.T) {
			b := start(t, hiptest.Settings{Capture: capture})
			require.NoError(t, b.s.BeginCapture(hipgo.CaptureRelaxed))
			err := b.s.WriteValue64(b.words.Addr(0), 1)
			assert.Equal(t, capture == hiptest.CaptureRefuses, err != nil, "%v", err)
			require.NoError(t, b.Settle(bound))
			assert.Equal(t, at[0], b.words.Load(0), "before the launch")
			graph, err := b.s.EndCapture()
			if capture == hiptest.CaptureRefuses && err != nil {
				return
			}
			require.NoError(t, err)
			exec, err := graph.Instantiate()
			require.NoError(t, err)
			require.NoError(t, exec.Launch(b.s))
			b.drained(t)
			assert.Equal(t, at[1], b.words.Load(0), "after it")
			require.NoError(t, exec.Close())
			require.NoError(t, graph.Close())
		})
	}
}
