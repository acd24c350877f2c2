package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQueueingDoesNotAllocate(t *testing.T) {
	f := newFakeStream(1, 3)
	f.queue = func(fabric.Stream, *fabric.Call) error { return nil }
	c := fabric.NewStream(f, fabric.Options{Arbiter: &arbiter{}})
	lengths, blocks := []int{4, 4, 4}, []int{2, 2, 2}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"all-reduce":          func() error { return c.AllReduce(onStream, a, b, 2, fabric.F32, fabric.Sum) },
		"reduce-scatter":      func() error { return c.ReduceScatter(onStream, a, b, 1, fabric.F32, fabric.Sum) },
		"all-gather":          func() error { return c.AllGather(onStream, a, b, 4) },
		"all-gather-v":        func() error { return c.AllGatherV(onStream, a, b, 4, lengths) },
		"all-gather-v device": func() error { return c.AllGatherVDevice(onStream, a, b, 4, 0x30000) },
		"all-gather-rows":     func() error { return c.AllGatherRows(onStream, a, b, 4, 2) },
		"broadcast":           func() error { return c.Broadcast(onStream, a, 4, 0) },
		"all-to-all":          func() error { return c.AllToAll(onStream, a, b, 2) },
		"all-to-all-v":        func() error { return c.AllToAllV(onStream, a, b, blocks, blocks) },
		"exchange":            func() error { return c.Exchange(onStream, a, b, 4, 0) },
		"send-recv":           func() error { return c.SendRecv(onStream, a, 4, 0, b, 4, 2) },
		"send":                func() error { return c.Send(onStream, a, 4, 0) },
		"recv":                func() error { return c.Recv(onStream, a, 4, 0) },
		"barrier":             func() error { return c.Barrier(onStream) },
		"queue":               func() error { return c.Queue(onStream, fabric.Call{Op: fabric.Barrier}) },
		"wait":                func() error { return c.Wait(ctx, onStream) },
		"check":               c.Check,
	} {
		var err error
		assert.Zero(t, testing.AllocsPerRun(100, func() { err = call() }), name)
		assert.NoError(t, err, name)
	}
}

func TestASecondGoroutineThatQueuesIsRefusedAtOnce(t *testing.T) {
	f := newFakeStream(0, 2)
	c := fabric.NewStream(f, fabric.Options{})
	plan, err := c.Capture(onStream)
	require.NoError(t, err)
	entered, leave := make(chan struct{}), make(chan struct{})
	f.queue = func(fabric.Stream, *fabric.Call) error { // a full ring
		close(entered)
		<-leave
		return nil
	}
	first := make(chan error)
	go func() { first <- c.Barrier(onStream) }()
	<-entered
	_, capture := c.Capture(onStream)
	for _, err := range []error{c.Barrier(onStream), capture, plan.End(), plan.Release()} {
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, "another goroutine is queueing a call of this group")
		walked(t, err)
	}
	assert.NoError(t, c.Wait(t.Context(), onStream), "a wait is no call")
	assert.NoError(t, c.Check())
	close(leave)
	require.NoError(t, <-first)
	f.queue = nil
	require.NoError(t, c.Barrier(onStream))
	assert.Equal(t, []int{2, 0, 0}, []int{f.queued, f.plan.ends, f.plan.releases})
}

func TestWhatAPathSaysBeforeItQueuesIsOfCallScope(t *testing.T) {
	f := newFakeStream(0, 2)
	c := fabric.NewStream(f, fabric.Options{})
	for _, kind := range []error{fabric.Invalidf("in at 0x1000 is no device memory"), fabric.Unsupportedf("this GPU has no such thing"), fabric.ErrCapture} {
		f.queue = func(fabric.Stream, *fabric.Call) error { return kind }
		f.capture, f.sync = kind, func(context.Context, fabric.Stream) error { return kind }
		_, capture := c.Capture(onStream)
		for _, err := range []error{c.Barrier(onStream), capture, c.Wait(t.Context(), onStream)} {
			assert.ErrorIs(t, err, kind)
			assert.Equal(t, fabric.ScopeCall, walked(t, err).Scope())
		}
	}
	f.queue, f.sync = nil, nil
	require.NoError(t, c.Barrier(onStream))
	require.NoError(t, c.Wait(t.Context(), onStream))
	assert.NoError(t, f.abortedWith())
	f.noMemory = errNoPages
	_, err := c.Alloc(8)
	assert.ErrorIs(t, err, errNoPages)
	_, err = c.Register(make([]byte, 8), 0x1000)
	assert.ErrorIs(t, err, errNoPages)
}

func TestMemoryIsRegisteredWithThePath(t *testing.T) {
	f := newFakeStream(1, 2)
	c := fabric.NewStream(f, fabric.Options{})
	m, err := c.Register(make([]byte, 64), 0x1000)
	require.NoError(t, err)
	assert.Equal(t, 64, m.Len())
	for _, bad := range []struct {
		host   []byte
		device fabric.DevPtr
		text   string
	}{{nil, 0x1000, "0 bytes at 0x1000 to register"}, {make([]byte, 8), 0, "8 bytes at 0x0 to register"}} {
		_, err = c.Register(bad.host, bad.device)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, bad.text)
		assert.Equal(t, "register", walked(t, err).Op)
	}
	f.noMemory = timeout(0, "nothing moved") // the group has ended meanwhile
	_, err = c.Register(make([]byte, 8), 0x1000)
	require.ErrorIs(t, err, fabric.ErrTimeout)
	assert.Equal(t, fabric.ScopeGroup, walked(t, err).Scope())
	_, err = c.Register(make([]byte, 8), 0x1000)
	require.ErrorIs(t, err, fabric.ErrTimeout)
	require.NoError(t, c.Close())
	_, err = c.Register(make([]byte, 8), 0x1000)
	assert.ErrorIs(t, err, fabric.ErrClosed)
}

func TestAQueuedCallsFailureIsTheGroupsCause(t *testing.T) {
	verdict := &fabric.Cause{Kind: fabric.ErrDevice, Peer: 2, From: 2, Text: "hipMemcpyAsync: 700"}
	arbiter := &arbiter{verdict: verdict}
	f := newFakeStream(1, 3)
	c := fabric.NewStream(f, fabric.Options{Group: "g", Arbiter: arbiter})
	require.NoError(t, c.Barrier(onStream))
	require.NoError(t, c.Wait(t.Context(), onStream))
	f.records = []fabric.Record{{Seq: 1, Op: fabric.Barrier, State: fabric.Done}, {Seq: 2, Op: fabric.AllGather, State: fabric.Failed}}
	f.sync = func(context.Context, fabric.Stream) error { return timeout(2, "nothing moved") }
	op := walked(t, c.Wait(t.Context(), onStream))
	assert.Same(t, verdict, op.Err)
	assert.Equal(t, []any{"all-gather", uint64(2), "g", "fake", 1}, []any{op.Op, op.Seq, op.Group, op.Path, op.Rank}, "the call that failed, not the wait")
	assert.ErrorContains(t, op.Local, "nothing moved")
	assert.Equal(t, fabric.ScopeDevice, op.Scope())
	assert.ErrorContains(t, op, "may still be written until the device has synchronised")
	assert.Same(t, verdict, f.abortedWith(), "no stream stays parked")

	f.sync = nil
	_, capture := c.Capture(onStream)
	for _, err := range []error{c.Barrier(onStream), c.Check(), c.Wait(t.Context(), onStream), capture} {
		assert.Same(t, verdict, walked(t, err).Err)
	}
	assert.Equal(t, 1, f.queued, "nothing is queued after a failure")
	assert.Len(t, arbiter.reports, 1)
}

// A device that does not behave after the group has failed of something else: its memory is what the engine must mind.
func TestADeviceOfThisRankIsNamedBesideAnotherCause(t *testing.T) {
	for peer, own := range map[int]bool{1: true, 2: false} {
		verdict := &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 2, From: 0, Text: "rank 2 was killed"}
		arbiter := &arbiter{verdict: verdict}
		f := newFakeStream(1, 3)
		c := fabric.NewStream(f, fabric.Options{Arbiter: arbiter})
		lost := fmt.Errorf("hipEventQuery: 719")
		f.sync = func(context.Context, fabric.Stream) error {
			return &fabric.Cause{Kind: fabric.ErrDevice, Peer: peer, From: peer, Text: "a copy may still land", Err: lost}
		}
		waited := c.Wait(t.Context(), onStream)
		assert.ErrorContains(t, waited, "a copy may still land")
		for _, err := range []error{waited, c.Check(), c.Barrier(onStream)} {
			op := walked(t, err)
			assert.Same(t, verdict, op.Err)
			assert.ErrorIs(t, err, fabric.ErrPeerFailed)
			assert.NotErrorIs(t, err, lost)
			assert.Equal(t, own, errors.Is(err, fabric.ErrDevice))
			assert.Equal(t, own, op.Scope() == fabric.ScopeDevice)
			assert.Equal(t, own, strings.Contains(err.Error(), "may still be written until the device has synchronised"))
		}
	}
}

func TestACauseSettledElsewhereReachesAWaitThatWentWell(t *testing.T) {
	arbiter := &arbiter{}
	f := newFakeStream(0, 2)
	c := fabric.NewStream(f, fabric.Options{Arbiter: arbiter})
	cause := &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 1, From: 1, Text: "rank 1 left"}
	f.sync = func(context.Context, fabric.Stream) error { arbiter.settle(cause); return nil }
	op := walked(t, c.Wait(t.Context(), onStream))
	assert.Same(t, cause, op.Err)
	assert.Equal(t, "wait", op.Op)
	assert.Same(t, cause, f.abortedWith())
	f.sync = func(context.Context, fabric.Stream) error { return fabric.Invalidf("no stream") }
	assert.Same(t, cause, walked(t, c.Wait(t.Context(), onStream)).Err, "the cause outranks what is wrong with a stream")
}

func TestAContextThatEndsAWaitLeavesTheGroupAlone(t *testing.T) {
	f := newFakeStream(0, 2)
	c := fabric.NewStream(f, fabric.Options{})
	f.sync = func(ctx context.Context, _ fabric.Stream) error { <-ctx.Done(); return ctx.Err() }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, context.Canceled, c.Wait(ctx, onStream), "as it is")
	assert.NoError(t, c.Check())
	f.sync = nil
	assert.NoError(t, c.Wait(t.Context(), onStream))

	f.sync = func(context.Context, fabric.Stream) error { return timeout(1, "nothing moved") }
	assert.ErrorIs(t, c.Wait(ctx, onStream), fabric.ErrTimeout, "a failure outranks a context")
}

func TestAQueueThatMeetsTheEndOfTheGroup(t *testing.T) {
	f := newFakeStream(0, 2)
	c := fabric.NewStream(f, fabric.Options{})
	f.queue = func(fabric.Stream, *fabric.Call) error { c.Abort(io.ErrNoProgress); return f.abortedWith() }
	op := walked(t, c.Barrier(onStream))
	assert.ErrorIs(t, op, fabric.ErrAborted)
	assert.NotErrorIs(t, op, io.ErrNoProgress)
	assert.ErrorContains(t, op, io.ErrNoProgress.Error())

	f = newFakeStream(0, 2)
	c = fabric.NewStream(f, fabric.Options{})
	f.queue = func(fabric.Stream, *fabric.Call) error { return errors.Join(c.Close(), f.abortedWith()) }
	op = walked(t, c.Barrier(onStream))
	assert.ErrorIs(t, op, fabric.ErrClosed)
	require.NoError(t, c.Close())
	assert.Equal(t, 1, f.closes)
	for _, err := range []error{c.Barrier(onStream), c.Wait(t.Context(), onStream)} {
		assert.ErrorIs(t, err, fabric.ErrClosed)
		assert.Equal(t, fabric.ScopeCall, walked(t, err).Scope())
	}
	assert.NoError(t, c.Check())
}

func TestAStreamCollectiveShowsItsPath(t *testing.T) {
	f := newFakeStream(2, 3)
	c := fabric.NewStream(f, fabric.Options{})
	assert.Equal(t, []any{2, 3, true}, []any{c.Rank(), c.World(), c.Ordered()})
	f.progress = fabric.Progress{Op: fabric.Barrier, Running: true}
	assert.EqualValues(t, 0b101, c.Progress().Waiting)
	f.progress.Running = false
	assert.Zero(t, c.Progress().Waiting)
	f.records = []fabric.Record{{Seq: 3}}
	assert.Equal(t, f.records, c.Records())
	_ = c.Barrier(0)
	assert.Equal(t, fabric.Stats{Calls: 5, Refused: 3}, c.Stats())
	m, err := c.Alloc(64)
	require.NoError(t, err)
	assert.Equal(t, 64, m.Len())
}

func TestAPlanEndsOnceAndIsReleasedOnce(t *testing.T) {
	f := newFakeStream(0, 2)
	c := fabric.NewStream(f, fabric.Options{})
	_, err := c.Capture(0)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	plan, err := c.Capture(onStream)
	require.NoError(t, err)
	require.NoError(t, plan.End())
	err = plan.End()
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "this plan has ended already")
	require.NoError(t, plan.Release())
	require.NoError(t, plan.Release())
	require.ErrorIs(t, plan.End(), fabric.ErrInvalid)
	assert.Equal(t, []int{1, 1}, []int{f.plan.ends, f.plan.releases})

	plan, err = c.Capture(onStream)
	require.NoError(t, err)
	c.Abort(errors.New("enough"))
	assert.ErrorIs(t, plan.End(), fabric.ErrAborted)
	f.plan.err = fabric.Invalidf("a replay runs")
	assert.ErrorIs(t, plan.Release(), fabric.ErrInvalid, "after a failure too")
	assert.ErrorIs(t, plan.Release(), fabric.ErrInvalid, "nothing was given back yet")
	require.NoError(t, c.Close())
	assert.NoError(t, plan.Release(), "the path has freed it")
	assert.ErrorIs(t, plan.End(), fabric.ErrClosed)
}
