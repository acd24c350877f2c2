package fabric_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGroupCallsAndEachOrderedPairAreNumberedApart(t *testing.T) {
	f := newFake(0, 3)
	c := fabric.New(f, fabric.Options{})
	a, b := make([]byte, 4), make([]byte, 4)
	var got fabric.Numbered
	f.seen = func(call *fabric.Call) { got = call.Numbered }
	step := func(err error, seq, fromSeq uint64) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, []uint64{seq, fromSeq}, []uint64{got.Seq, got.FromSeq})
	}
	step(c.Barrier(), 1, 1)
	step(c.AllToAll(nil, nil), 2, 2)
	step(c.Send(a, 1), 1, 0)
	step(c.Send(a, 1), 2, 0)
	step(c.Send(a, 2), 1, 0)
	step(c.Recv(a, 1), 0, 1)
	step(c.Exchange(a, b, 1), 3, 2)
	step(c.SendRecv(a, 1, b, 2), 4, 1)
	step(c.SendRecv(a, 2, b, 1), 2, 3)
	step(c.Barrier(), 3, 3)
}

func TestASecondCallIsRefusedAndTheFirstUnharmed(t *testing.T) {
	f := newFake(0, 2)
	c := fabric.New(f, fabric.Options{})
	first, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	for _, again := range []error{c.Barrier(), begun(c, fabric.Call{Op: fabric.Send, Peer: 1})} {
		require.ErrorIs(t, again, fabric.ErrInvalid)
		assert.ErrorContains(t, again, "a call of this group is in flight (barrier seq 1)")
		assert.Equal(t, fabric.ScopeCall, walked(t, again).Scope())
	}
	assert.EqualValues(t, 1, f.begins.Load())
	require.NoError(t, first.Wait())
	require.NoError(t, c.Barrier())
	assert.Equal(t, fabric.Stats{Calls: 2, Refused: 2, CallNs: c.Stats().CallNs, Transport: fabric.TransportStats{Kind: "fake", Parks: 7}}, c.Stats())
}

func TestAStartedIsGoodForOneEnd(t *testing.T) {
	f := newFake(0, 2)
	c := fabric.New(f, fabric.Options{})
	require.ErrorIs(t, fabric.Started{}.Wait(), fabric.ErrInvalid)
	_, err := fabric.Started{}.Poll()
	require.ErrorIs(t, err, fabric.ErrInvalid)

	ready := false
	f.poll = func() (bool, error) { return ready, nil }
	old, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	done, err := old.Poll()
	require.NoError(t, err)
	require.False(t, done)
	ready = true
	done, err = old.Poll()
	require.NoError(t, err)
	require.True(t, done)

	ready = false
	next, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	for _, misuse := range []func() error{old.Wait, func() error { _, err := old.Poll(); return err }} {
		err := misuse()
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, "this call was already waited for")
		walked(t, err)
	}
	done, err = next.Poll()
	require.NoError(t, err)
	require.False(t, done, "the old one's misuse has not ended the new call")
	ready = true
	require.NoError(t, next.Wait())
	require.ErrorIs(t, next.Wait(), fabric.ErrInvalid)
	assert.EqualValues(t, 2, c.Stats().Calls)
}

func TestOneGoroutineDrivesACall(t *testing.T) {
	f := newFake(0, 2)
	c := fabric.New(f, fabric.Options{})
	entered, leave := make(chan struct{}), make(chan struct{})
	f.poll = func() (bool, error) {
		close(entered)
		<-leave
		return true, nil
	}
	s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	result := make(chan error)
	go func() { result <- s.Wait() }()
	<-entered
	err = s.Wait()
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "another goroutine is waiting for this call")
	walked(t, err)
	close(leave)
	require.NoError(t, <-result)
}

func TestTheCallersCallIsCopiedAtBegin(t *testing.T) {
	f := newFake(0, 2)
	c := fabric.New(f, fabric.Options{})
	var kept *fabric.Call
	f.seen = func(call *fabric.Call) { kept = call }
	mine := fabric.Call{Op: fabric.Send, Peer: 1, Numbered: fabric.Numbered{Seq: 77}}
	s, err := c.Begin(mine)
	require.NoError(t, err)
	mine.Peer = 0
	assert.Equal(t, 1, kept.Peer)
	assert.EqualValues(t, 1, kept.Seq, "the Collective's number, not the caller's")
	require.NoError(t, s.Wait())
}
