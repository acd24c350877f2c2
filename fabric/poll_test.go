package fabric_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestAPolledCallHasTheSameDeadline(t *testing.T) {
	f := newFake(0, 2)
	f.poll = func() (bool, error) { return false, nil }
	c := fabric.New(f, fabric.Options{Timeout: 50 * time.Millisecond})
	s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	begun, moved := time.Now(), time.Duration(0)
	for done := false; !done; {
		if since := time.Since(begun); since < 40*time.Millisecond {
			f.progress++
			moved = since
		}
		done, err = s.Poll()
	}
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.GreaterOrEqual(t, time.Since(begun), moved+50*time.Millisecond, "the deadline counts from the last progress")
	require.Len(t, f.stalls, 2, "said when it stalled, and at the end")
	assert.Equal(t, 50*time.Millisecond, f.stalls[1])
}

func TestAFirstPolledCallHasAllOfItsTimeout(t *testing.T) {
	f := newFake(0, 2)
	f.poll = func() (bool, error) { return false, nil }
	c := fabric.New(f, fabric.Options{Timeout: 50 * time.Millisecond})
	<-time.After(40 * time.Millisecond)
	begun := time.Now()
	s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	for done := false; !done; {
		done, err = s.Poll()
	}
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
}

func TestAPolledCallWithoutTimeoutGoesOn(t *testing.T) {
	f := newFake(0, 2)
	f.poll = func() (bool, error) { return false, nil }
	c := fabric.New(f, fabric.Options{Timeout: fabric.NoTimeout})
	s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	for begun := time.Now(); time.Since(begun) < 30*time.Millisecond || len(f.stalls) == 0; {
		done, err := s.Poll()
		require.False(t, done)
		require.NoError(t, err)
	}
	assert.Len(t, f.stalls, 1)
}

func TestAStaleStartedIsVoidWhileOthersBegin(t *testing.T) {
	f := newFake(0, 2)
	c := fabric.New(f, fabric.Options{})
	var stale fabric.Started
	var mu sync.Mutex
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			mu.Lock()
			s := stale
			mu.Unlock()
			if err := s.Wait(); !errors.Is(err, fabric.ErrInvalid) {
				t.Errorf("a stale Started gave %v", err)
				return
			}
		}
	})
	for range 100_000 {
		s, err := c.Begin(fabric.Call{Op: fabric.Barrier})
		require.NoError(t, err)
		for err = s.Wait(); err != nil; err = s.Wait() { // the stale one may be at the door
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
		mu.Lock()
		stale = s
		mu.Unlock()
	}
	close(stop)
	wg.Wait()
}

func TestAbortsReasonTravelsAsTextAlone(t *testing.T) {
	for _, reason := range []error{fabric.ErrInvalid, os.ErrDeadlineExceeded, os.ErrClosed} {
		c := fabric.New(newFake(0, 2), fabric.Options{})
		c.Abort(fmt.Errorf("engine: %w", reason))
		var op *fabric.OpError
		require.ErrorAs(t, c.Barrier(), &op)
		assert.ErrorIs(t, op, fabric.ErrAborted)
		assert.NotErrorIs(t, op, reason, "the other ranks cannot have it")
		assert.Equal(t, fabric.ScopeGroup, op.Scope())
		assert.False(t, op.Timeout())
		assert.ErrorContains(t, op, "engine: ")
	}
}

func TestAFailedOrClosedGroupSaysSoBeforeAnythingElse(t *testing.T) {
	c := fabric.New(newFake(0, 2), fabric.Options{})
	_, err := c.Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	assert.ErrorIs(t, c.Barrier(), fabric.ErrInvalid, "the begun call is in flight")
	c.Abort(errors.New("enough"))
	assert.ErrorIs(t, c.Barrier(), fabric.ErrAborted)
	require.NoError(t, c.Close())
	assert.ErrorIs(t, c.Barrier(), fabric.ErrClosed)
}

func TestBeginChecksTheBuffersThatAnOperationDoesNotTake(t *testing.T) {
	b := make([]byte, 4)
	c := fabric.New(newFake(0, 2), fabric.Options{})
	for name, call := range map[string]fabric.Call{
		"root with out":    {Op: fabric.Broadcast, In: b, Out: make([]byte, 4)},
		"other with in":    {Op: fabric.Broadcast, Root: 1, In: b},
		"barrier with in":  {Op: fabric.Barrier, In: b},
		"barrier with out": {Op: fabric.Barrier, Out: b},
		"send with out":    {Op: fabric.Send, Peer: 1, In: b, Out: make([]byte, 4)},
		"recv with in":     {Op: fabric.Recv, From: 1, In: b, Out: make([]byte, 4)},
	} {
		_, err := c.Begin(call)
		assert.ErrorIs(t, err, fabric.ErrInvalid, name)
	}
	_, err := c.Alloc(1 << 62)
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.NoError(t, c.Barrier(), "nothing was begun")
}
