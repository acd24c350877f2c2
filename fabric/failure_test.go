package fabric_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func timeout(peer int, text string) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: peer, From: -1, Text: text}
}

func TestWithoutAnArbiterTheFirstFailureIsTheCause(t *testing.T) {
	f := newFake(1, 3)
	c := fabric.New(f, fabric.Options{Group: "g"})
	f.poll = func() (bool, error) { return false, timeout(2, "nothing moved") }
	first := walked(t, c.Barrier())
	assert.ErrorIs(t, first, fabric.ErrTimeout)
	assert.True(t, first.Timeout())
	assert.Equal(t, fabric.ScopeGroup, first.Scope())
	assert.Equal(t, []any{2, 1, uint64(1), "g", "fake", "barrier"}, []any{first.Peer, first.From, first.Seq, first.Group, first.Path, first.Op})
	assert.NoError(t, first.Local, "the cause is what this rank saw")

	f.poll = nil
	again := walked(t, c.AllGather(nil, nil))
	assert.Same(t, first.Err, again.Err, "the first cause stays")
	assert.EqualValues(t, 1, f.begins.Load(), "nothing moves after a failure")
	assert.Same(t, first.Err, walked(t, c.Check()).Err)
	assert.Same(t, first.Err, f.abortedWith(), "the path ends with the cause")
	assert.EqualValues(t, 1, c.Stats().Failed)
}

func TestTheArbitersCauseReplacesWhatThisRankSaw(t *testing.T) {
	verdict := &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 2, From: 0, Text: "rank 2 was killed", Part: 4}
	a := &arbiter{verdict: verdict}
	f := newFake(1, 3)
	c := fabric.New(f, fabric.Options{Arbiter: a})
	broken := &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 2, From: -1, Text: "connection reset", Err: io.ErrUnexpectedEOF}
	f.poll = func() (bool, error) { return false, broken }
	op := walked(t, c.Barrier())
	assert.Same(t, verdict, op.Err)
	assert.Equal(t, []any{2, 0, uint32(4)}, []any{op.Peer, op.From, op.Part})
	require.Error(t, op.Local)
	assert.Equal(t, 1, fabric.CauseOf(op.Local).From)
	assert.ErrorIs(t, op.Local, io.ErrUnexpectedEOF, "what the system said stays with the rank that heard it")
	assert.NotErrorIs(t, op, io.ErrUnexpectedEOF)
	assert.Equal(t, -1, broken.From, "the transport's cause is not written to")
	require.Len(t, a.reports, 1)
	assert.Equal(t, 1, fabric.CauseOf(a.reports[0]).From)
	assert.Same(t, verdict, f.abortedWith())
	_ = c.Barrier()
	assert.Len(t, a.reports, 1, "reported once")
}

func TestACauseSettledElsewhereEndsTheNextCall(t *testing.T) {
	a := &arbiter{}
	f := newFake(0, 2)
	c := fabric.New(f, fabric.Options{Arbiter: a})
	require.NoError(t, c.Barrier())
	require.NoError(t, c.Check())
	cause := &fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: 1, Text: "rank 1 is elsewhere"}
	a.settle(cause)
	assert.Same(t, cause, walked(t, c.Barrier()).Err)
	assert.EqualValues(t, 1, f.begins.Load())
	assert.Same(t, cause, walked(t, c.Check()).Err)
	assert.Same(t, cause, f.abortedWith())
	c.Abort(errors.New("later"))
	assert.Same(t, cause, walked(t, c.Check()).Err)
	assert.Empty(t, a.reports)
}

func TestCheckEndsACallInFlightOnceTheCauseIsSettled(t *testing.T) {
	a := &arbiter{}
	f := newFake(0, 2)
	f.wait = f.untilAborted
	c := fabric.New(f, fabric.Options{Arbiter: a})
	result := make(chan error)
	go func() { result <- c.Barrier() }()
	cause := &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 1, From: 1, Text: "rank 1 left"}
	a.settle(cause)
	require.Error(t, c.Check())
	op := walked(t, <-result)
	assert.Same(t, cause, op.Err)
	assert.NoError(t, op.Local)
}

func TestAbortEndsTheCallInFlightWithItsText(t *testing.T) {
	a := &arbiter{}
	f := newFake(0, 2)
	f.wait = f.untilAborted
	c := fabric.New(f, fabric.Options{Arbiter: a})
	s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	c.Abort(io.ErrNoProgress)
	c.Abort(errors.New("a second reason"))
	op := walked(t, s.Wait())
	assert.ErrorIs(t, op, fabric.ErrAborted)
	assert.ErrorContains(t, op, io.ErrNoProgress.Error())
	assert.Equal(t, []int{-1, 0}, []int{op.Peer, op.From})
	assert.Len(t, a.reports, 1)

	unnamed := fabric.New(newFake(0, 1), fabric.Options{})
	unnamed.Abort(nil)
	assert.ErrorContains(t, walked(t, unnamed.Barrier()), "aborted: no reason given")
}

// fickle settles one cause while a report is under way, and answers with another.
type fickle struct {
	arbiter
	c *fabric.Collective
}

func (f *fickle) Report(local error) error {
	f.settle(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: 1, From: 0, Text: "the first"})
	_ = f.c.Check()
	return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: 1, From: 0, Text: "the second"}
}

func TestTheFirstCauseStaysWhenTwoMeet(t *testing.T) {
	a := &fickle{}
	f := newFake(0, 2)
	f.poll = func() (bool, error) { return false, timeout(1, "what this rank saw") }
	a.c = fabric.New(f, fabric.Options{Arbiter: a})
	op := walked(t, a.c.Barrier())
	assert.ErrorContains(t, op, "the first")
	assert.ErrorContains(t, op.Local, "what this rank saw")
	assert.ErrorContains(t, a.c.Check(), "the first")
}

func TestABeginThatFailsEndsTheGroup(t *testing.T) {
	f := newFake(0, 2)
	f.refuse = timeout(1, "no room")
	c := fabric.New(f, fabric.Options{})
	require.ErrorIs(t, walked(t, c.Barrier()), fabric.ErrTimeout)
	require.ErrorIs(t, walked(t, c.Check()), fabric.ErrTimeout)
	assert.Equal(t, fabric.Failed, c.Records()[0].State)
}

func TestAnErrorWithoutACauseStillBecomesOne(t *testing.T) {
	f := newFake(0, 2)
	f.poll = func() (bool, error) { return false, io.ErrClosedPipe }
	c := fabric.New(f, fabric.Options{})
	op := walked(t, c.Barrier())
	assert.ErrorIs(t, op, fabric.ErrAborted)
	assert.ErrorIs(t, op, io.ErrClosedPipe)
}

func TestCloseEndsTheCallInFlightAndEveryLaterOne(t *testing.T) {
	f := newFake(0, 2)
	f.wait = f.untilAborted
	c := fabric.New(f, fabric.Options{Arbiter: &arbiter{}})
	s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	assert.EqualValues(t, 1, f.closes.Load())
	for _, err := range []error{s.Wait(), c.Barrier(), c.Send(nil, 1)} {
		op := walked(t, err)
		assert.ErrorIs(t, op, fabric.ErrClosed)
		assert.Equal(t, fabric.ScopeCall, op.Scope())
	}
	c.Abort(errors.New("too late"))
	assert.NoError(t, c.Check(), "a group that was closed in peace has no cause")
}

func TestTheTimeoutIsTheTransportsToApply(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		0: fabric.DefaultTimeout, time.Second: time.Second, fabric.NoTimeout: fabric.NoTimeout,
	} {
		f := newFake(0, 2)
		var got time.Duration
		f.wait = func(idle time.Duration) error { got = idle; return nil }
		require.NoError(t, fabric.New(f, fabric.Options{Timeout: given}).Barrier())
		assert.Equal(t, want, got)
	}
}
