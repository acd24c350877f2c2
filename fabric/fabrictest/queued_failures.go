package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// pile queues n barriers, then waits for them.
func pile(s *stream, n int) error {
	for range n {
		if err := s.Do(Call{Op: fabric.Barrier}); err != nil {
			return err
		}
	}
	return s.Sync()
}

// testFailureAmongQueued lets a rank fall silent while the others queue more than a ring: a call that waits for room ends too.
func testFailureAmongQueued(t *testing.T, open Opener) {
	const world, silent = 3, 1
	streams := openStreams(t, open, world, SubjectOptions{Group: "silent", Timeout: shortTimeout})
	errs := gather(t, world, time.Minute, func(rank int) error {
		if rank == silent {
			err := pile(streams[rank], 50)
			awaitCause(streams[rank])
			return err
		}
		return pile(streams[rank], 3*ringCalls)
	})
	if errs[silent] == nil {
		errs[silent] = streams[silent].Do(Call{Op: fabric.Barrier})
	}
	cause := expectCause(t, subjectsOf(streams), errs, fabric.ErrTimeout)
	if cause.Peer != silent {
		t.Errorf("the cause names rank %d, not the silent %d: %v", cause.Peer, silent, cause)
	}
	allPass(t, streams)
}

// allPass says which stream stays parked.
func allPass(t *testing.T, streams []*stream) {
	t.Helper()
	for _, s := range streams {
		if err := s.passes(); err != nil {
			t.Error(err)
		}
	}
}

// testDesyncAmongQueued has good calls before and behind the one on which ranks disagree.
func testDesyncAmongQueued(t *testing.T, open Opener) {
	const world = 2
	streams := openStreams(t, open, world, SubjectOptions{Group: "desync", Timeout: valuesTimeout})
	errs := gather(t, world, time.Minute, func(rank int) error {
		s := streams[rank]
		b, err := newGuarded(s, 2*desyncBytes)
		if err != nil {
			return err
		}
		good := Call{Op: fabric.AllReduce, DType: fabric.I32, Reduce: fabric.Sum, In: b.Slice(0, desyncBytes), Out: b.Slice(0, desyncBytes)}
		odd := good
		odd.In, odd.Out = b.Slice(0, desyncBytes+4*rank), b.Slice(0, desyncBytes+4*rank)
		for _, c := range []Call{good, good, odd, good, good} {
			if err := s.Do(c); err != nil {
				return err
			}
		}
		return errors.Join(s.Sync(), b.intact())
	})
	_ = expectCause(t, subjectsOf(streams), errs, fabric.ErrDesync)
	allPass(t, streams)
}

// testAbortWhileParked aborts once the streams of the others wait in calls that the aborting rank never makes.
func testAbortWhileParked(t *testing.T, open Opener) {
	const world = 3
	for by := range world {
		streams := openStreams(t, open, world, SubjectOptions{Group: "abort", Timeout: fabric.NoTimeout})
		parked := make(chan error, world)
		errs := gather(t, world, time.Minute, func(rank int) error {
			s := streams[rank]
			if rank != by {
				var err error
				for range 5 {
					err = errors.Join(err, s.Do(Call{Op: fabric.Barrier}))
				}
				parked <- err
				return errors.Join(err, s.Sync())
			}
			for range world - 1 {
				if err := <-parked; err != nil {
					return err
				}
			}
			s.Abort(errors.New("the engine has had enough"))
			return s.Sync()
		})
		cause := expectCause(t, subjectsOf(streams), errs, fabric.ErrAborted)
		if cause.From != by {
			t.Errorf("the cause is not rank %d's: %v (from %d)", by, cause, cause.From)
		}
		allPass(t, streams)
	}
}

// testCloseWhileParked closes a rank whose stream waits: the stream goes on, and a Wait in progress ends.
func testCloseWhileParked(t *testing.T, open Opener) {
	streams := openStreams(t, open, 2, SubjectOptions{Group: "close", Timeout: fabric.NoTimeout})
	s := streams[0]
	for range 5 {
		if err := s.Do(Call{Op: fabric.Barrier}); err != nil {
			t.Fatal(err)
		}
	}
	waits := make(chan error, 1)
	go func() { waits <- s.Sync() }()
	together(t, 1, time.Minute, func(int) error {
		if err := s.c.Close(); err != nil {
			return err
		}
		if err := <-waits; !errors.Is(err, fabric.ErrClosed) {
			return fmt.Errorf("a wait that Close met gave %w", err)
		}
		if err := s.Do(Call{Op: fabric.Barrier}); !errors.Is(err, fabric.ErrClosed) {
			return fmt.Errorf("a call after Close gave %w", err)
		}
		return s.passes()
	})
	errs := gather(t, 1, time.Minute, func(int) error { return pile(streams[1], 6) })
	cause := expectCause(t, []Subject{streams[1]}, errs, fabric.ErrPeerFailed)
	if cause.Peer != 0 {
		t.Errorf("the cause names rank %d, not the one that left: %v", cause.Peer, cause)
	}
	allPass(t, streams[1:])
}

// testContext ends a wait by its context, and then meets the call that it waited for.
func testContext(t *testing.T, open Opener) {
	streams := openStreams(t, open, 2, SubjectOptions{Group: "context", Timeout: valuesTimeout})
	together(t, 1, time.Minute, func(int) error {
		s := streams[0]
		if err := s.Do(Call{Op: fabric.Barrier}); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if err := s.c.Wait(ctx, s.d.Stream); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fabric.ErrTimeout) {
			return fmt.Errorf("a wait whose context ended gave %w", err)
		}
		return s.Check()
	})
	together(t, 2, time.Minute, func(rank int) error {
		if rank == 0 {
			return streams[0].Sync()
		}
		return pile(streams[1], 1)
	})
}

// testTwoQueueing lets two goroutines queue until they meet, at the latest where one waits for room: one is refused at once,
// and what was queued is made.
func testTwoQueueing(t *testing.T, subjects []Subject) {
	in, err := holding(subjects[1], []byte{7})
	if err != nil {
		t.Fatal(err)
	}
	out, err := newGuarded(subjects[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		queued int
		err    error
	}
	results, stop := make(chan result, 2), make(chan struct{})
	for range 2 {
		go func() {
			r := result{}
			for {
				select {
				case <-stop:
					results <- r
					return
				default:
				}
				if r.err = subjects[0].Do(Call{Op: fabric.Recv, Out: out.Buffer, From: 1}); r.err != nil {
					results <- r
					return
				}
				r.queued++
			}
		}()
	}
	refused := <-results // nothing has been sent, so only a refusal can end
	close(stop)
	var op *fabric.OpError
	if !errors.Is(refused.err, fabric.ErrInvalid) || !errors.As(refused.err, &op) || op.Scope() != fabric.ScopeCall {
		t.Errorf("the second of two that queue at once gave %v; ErrInvalid is due", refused.err)
	}
	if e := WalkError(refused.err); e != nil {
		t.Error(e)
	}
	send := Call{Op: fabric.Send, In: in.Buffer, Peer: 0}
	if err := makeCall(subjects[1], send); err != nil { // makes room for the one that waits
		t.Fatal(err)
	}
	other := <-results
	if other.err != nil && !errors.Is(other.err, fabric.ErrInvalid) {
		t.Errorf("the first of two that queue at once gave %v", other.err)
	}
	together(t, 2, time.Minute, func(rank int) error {
		if rank == 0 {
			return subjects[0].Sync()
		}
		for range refused.queued + other.queued - 1 {
			if err := subjects[1].Do(send); err != nil {
				return err
			}
		}
		return subjects[1].Sync()
	})
	if err := out.holds([]byte{7}); err != nil {
		t.Error(err)
	}
}
