package fabrictest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// shortTimeout is that of groups which are meant to run into it.
const shortTimeout = 400 * time.Millisecond

// testAbort ends a group before, during and after a call, from each rank in turn.
func testAbort(t *testing.T, open Opener) {
	const world = 3
	reason := errors.New("the engine has had enough")
	for by := range world {
		for _, when := range []string{"before", "during", "after"} {
			t.Run(fmt.Sprintf("%s by rank %d", when, by), func(t *testing.T) {
				subjects := openWorld(t, open, world, SubjectOptions{Group: "abort", Timeout: valuesTimeout})
				var ready sync.WaitGroup
				ready.Add(world - 1)
				if when == "before" {
					subjects[by].Abort(reason)
				}
				errs := gather(t, world, time.Minute, func(rank int) error {
					s := subjects[rank]
					if when == "after" {
						if err := makeShape(s, barrier); err != nil && !errors.Is(err, fabric.ErrAborted) {
							return err // the first to leave may already have aborted
						}
					}
					if rank != by {
						ready.Done()
						return makeShape(s, barrier)
					}
					ready.Wait()
					if when != "before" {
						s.Abort(reason)
						s.Abort(errors.New("a second reason, which nobody may see"))
					}
					return makeShape(s, barrier)
				})
				cause := expectCause(t, subjects, errs, fabric.ErrAborted)
				if !strings.Contains(cause.Text, reason.Error()) || cause.From != by {
					t.Errorf("the cause is not rank %d's: %v (from %d)", by, cause, cause.From)
				}
			})
		}
	}
}

// testSilentRank leaves calls waiting for a rank that makes none.
func testSilentRank(t *testing.T, open Opener) {
	const world, silent = 3, 2
	n := 3 * PartBytes
	for _, c := range []shape{
		barrier,
		{Call{Op: fabric.AllReduce, DType: fabric.F32, Reduce: fabric.Sum}, n, n},
		{Call{Op: fabric.Broadcast, Root: silent}, -1, n},
		{Call{Op: fabric.Recv, From: silent}, -1, n},
	} {
		t.Run(c.Op.String(), func(t *testing.T) {
			subjects := openWorld(t, open, world, SubjectOptions{Group: "silent", Timeout: shortTimeout})
			began := time.Now()
			errs := gather(t, world, time.Minute, func(rank int) error {
				if rank == silent {
					return nil
				}
				return makeShape(subjects[rank], c)
			})
			if took := time.Since(began); took < shortTimeout {
				t.Errorf("ended after %v; the Timeout is %v", took, shortTimeout)
			}
			// The others' bytes are there: until it hears of the cause, its call is as good as any.
			awaitCause(subjects[silent])
			errs[silent] = makeShape(subjects[silent], barrier)
			cause := expectCause(t, subjects, errs, fabric.ErrTimeout)
			if cause.Peer != silent {
				t.Errorf("the cause names rank %d, not the silent %d: %v", cause.Peer, silent, cause)
			}
			for rank, err := range errs {
				var op *fabric.OpError
				if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) || !op.Timeout() || (rank != silent && op.Seq == 0) {
					t.Errorf("rank %d: %v is no os.ErrDeadlineExceeded with a seq", rank, err)
				}
			}
		})
	}
}

// awaitCause waits until a rank has heard of its group's cause, or for far longer than that takes.
func awaitCause(s Subject) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(valuesTimeout); s.Check() == nil; {
		select {
		case <-tick.C:
		case <-late:
			return
		}
	}
}

// testClose uses a rank after its Close, and the others after it has gone.
func testClose(t *testing.T, open Opener) {
	subjects := openWorld(t, open, 2, SubjectOptions{Group: "close", Timeout: valuesTimeout})
	together(t, 2, time.Minute, func(rank int) error { return makeShape(subjects[rank], barrier) })
	for range 2 {
		if err := subjects[0].Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	subjects[0].Abort(errors.New("too late to matter"))
	err := makeCall(subjects[0], Call{Op: fabric.Barrier})
	var op *fabric.OpError
	if !errors.Is(err, fabric.ErrClosed) || !errors.Is(err, os.ErrClosed) || !errors.As(err, &op) || op.Scope() != fabric.ScopeCall {
		t.Errorf("a call after Close gave %v; ErrClosed of call scope is due", err)
	}
	if e := WalkError(err); e != nil {
		t.Error(e)
	}
	errs := gather(t, 2, time.Minute, func(rank int) error {
		if rank == 0 {
			return nil
		}
		return makeShape(subjects[1], barrier)
	})
	cause := expectCause(t, subjects[1:], errs[1:], fabric.ErrPeerFailed)
	if cause.Peer != 0 {
		t.Errorf("the cause names rank %d, not the one that left: %v", cause.Peer, cause)
	}
}

// testTwoAtOnce lets two goroutines of a rank call: one is refused before anything comes, the other gets its bytes.
func testTwoAtOnce(t *testing.T, open Opener) {
	subjects := openWorld(t, open, 2, SubjectOptions{Group: "two", Timeout: valuesTimeout})
	if subjects[0].Queues() {
		testTwoQueueing(t, subjects)
		return
	}
	want := noise(0, 3, PartBytes)
	type result struct {
		out *guarded
		err error
	}
	results := make(chan result, 2)
	for range 2 {
		out, err := newGuarded(subjects[0], len(want))
		if err != nil {
			t.Fatal(err)
		}
		go func() { results <- result{out, makeCall(subjects[0], Call{Op: fabric.Recv, Out: out.Buffer, From: 1})} }()
	}
	next := func(what string) result {
		select {
		case r := <-results:
			return r
		case <-time.After(valuesTimeout * 2):
			t.Fatal("neither of two calls at once ended: ", what)
			return result{}
		}
	}
	refused := next("the one to refuse") // nothing has been sent, so only a refusal can end
	var op *fabric.OpError
	if !errors.Is(refused.err, fabric.ErrInvalid) || !errors.As(refused.err, &op) || op.Scope() != fabric.ScopeCall {
		t.Errorf("the second of two calls at once gave %v; ErrInvalid is due", refused.err)
	}
	if e := WalkError(refused.err); e != nil {
		t.Error(e)
	}
	in, err := holding(subjects[1], want)
	if err != nil {
		t.Fatal(err)
	}
	if err := makeCall(subjects[1], Call{Op: fabric.Send, In: in.Buffer, Peer: 0}); err != nil {
		t.Errorf("rank 1: %v", err)
	}
	taken := next("the one to complete")
	if err := errors.Join(taken.err, taken.out.holds(want), refused.out.intact()); err != nil {
		t.Errorf("the first of two calls at once: %v", err)
	}
	together(t, 2, time.Minute, func(rank int) error { return makeShape(subjects[rank], barrier) })
}

// testInvalid makes calls that must be refused by this rank alone, and then good ones with the same group.
func testInvalid(t *testing.T, open Opener) {
	const world = 2
	subjects := openWorld(t, open, world, SubjectOptions{Group: "invalid", Timeout: valuesTimeout})
	together(t, world, time.Minute, func(rank int) error {
		for _, c := range []shape{
			{Call{Op: fabric.AllReduce, DType: fabric.F32, Reduce: fabric.Sum}, 8, 12},
			{Call{Op: fabric.AllReduce, DType: fabric.F32, Reduce: fabric.Sum}, 6, 6},
			{Call{Op: fabric.AllReduce, DType: fabric.I32, Reduce: fabric.Avg}, 8, 8},
			{Call{Op: fabric.AllReduce, DType: 99, Reduce: fabric.Sum}, 8, 8},
			{Call{Op: fabric.AllGather}, 8, 15},
			{Call{Op: fabric.AllGatherV, Stride: 8, Lengths: []int{8, 9}}, 8, 16},
			{Call{Op: fabric.AllGatherRows, RowBytes: 3}, 8, 16},
			{Call{Op: fabric.Broadcast, Root: world}, 8, 8},
			{Call{Op: fabric.AllToAll}, 7, 7},
			{Call{Op: fabric.AllToAllV, Lengths: []int{4, 4}, InLengths: []int{4, 5}}, 8, 8},
			{Call{Op: fabric.Exchange, Peer: rank}, 8, 8},
			{Call{Op: fabric.Send, Peer: -1}, 8, -1},
		} {
			err := makeShape(subjects[rank], c)
			var op *fabric.OpError
			if !errors.Is(err, fabric.ErrInvalid) || !errors.As(err, &op) || op.Scope() != fabric.ScopeCall {
				return fmt.Errorf("%v %+v gave %w; ErrInvalid is due", c.Op, c.Call, err)
			}
			if err := WalkError(err); err != nil {
				return err
			}
		}
		return makeShape(subjects[rank], barrier, side{op: fabric.AllReduce}.callOf(rank), side{op: fabric.Exchange}.callOf(rank))
	})
}
