package rdma

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// joined are two ends on two hosts, connected.
func joined(t *testing.T) (a, b *end) {
	l := newLab(t, verbstest.Switch(2, 1))
	var ends []*end
	for _, h := range l.hosts {
		lib, err := h.sys.Load()
		require.NoError(t, err)
		e, err := newEnd(lib, "mem0", 1, h.sys.Look(t.Context()).Devices[0].Ports[0].Chosen)
		require.NoError(t, err)
		t.Cleanup(e.close)
		ends = append(ends, e)
	}
	a, b = ends[0], ends[1]
	require.NoError(t, b.connect(a.door(), 0))
	require.NoError(t, a.connect(b.door(), 0))
	return a, b
}

// TestAByteThatIsNotAsSentIsSeen changes one after it has come.
func TestAByteThatIsNotAsSentIsSeen(t *testing.T) {
	a, b := joined(t)
	for n, place := range []int{-1, 0, 4095, 9999} {
		require.NoError(t, a.send(t.Context(), uint32(n), 10_000))
		require.NoError(t, b.poll(t.Context(), func() bool { return len(b.came) > 0 }))
		if place >= 0 {
			b.mem.Bytes()[largeBytes+place] ^= 4
		}
		right, err := b.receive(t.Context(), uint32(n), 10_000)
		require.NoError(t, err)
		assert.Equal(t, place < 0, right, "byte %d", place)
	}
}

// TestAnEndThatWaitsUsesNoProcessor has a message come long after the wait for it began.
func TestAnEndThatWaitsUsesNoProcessor(t *testing.T) {
	a, b := joined(t)
	const bound = 500 * time.Millisecond
	ctx, cancel := within(t.Context(), bound, "the wait")
	defer cancel()
	used := threadTime(t, func() {
		_, err := b.receive(ctx, 0, smallBytes)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "nothing came")
	})
	assert.Less(t, used, bound/10)
	require.NoError(t, a.send(t.Context(), 0, smallBytes))
	right, err := b.receive(t.Context(), 0, smallBytes)
	require.NoError(t, err)
	assert.True(t, right)
}

// threadTime is the processor's time of a thread that does nothing else.
func threadTime(t *testing.T, do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after syscall.Rusage
	const thread = 1 // RUSAGE_THREAD
	require.NoError(t, syscall.Getrusage(thread, &before))
	do()
	require.NoError(t, syscall.Getrusage(thread, &after))
	return time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
}
