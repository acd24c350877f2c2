package fabrictest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	// largeBytes is more than any path sends ahead.
	largeBytes = 4 << 20
	// facingBytes is more than a path and two sockets hold.
	facingBytes = 24 << 20
)

// testOneWay moves much one way and nothing the other, where a bound on sending ahead would wait for ever if it were
// applied.
func testOneWay(t *testing.T, open Opener) {
	for _, world := range []int{2, 3} {
		subjects := openWorld(t, open, world, SubjectOptions{Group: "one-way", Timeout: valuesTimeout})
		want := noise(0, 7, largeBytes)
		lengths := make([]int, world)
		lengths[0] = largeBytes
		together(t, world, time.Minute, func(rank int) error {
			s := subjects[rank]
			in, err := holding(s, want)
			if err != nil {
				return err
			}
			out, err := newGuarded(s, world*largeBytes)
			if err != nil {
				return err
			}
			head := out.Slice(0, largeBytes)
			var calls []Call
			switch rank {
			case 0:
				calls = []Call{{Op: fabric.Send, In: in, Peer: 1}, {Op: fabric.Send, In: in, Peer: 1}, {Op: fabric.Broadcast, In: in}}
			case 1:
				calls = []Call{{Op: fabric.Recv, Out: head}, {Op: fabric.Recv, Out: head}, {Op: fabric.Broadcast, Out: head}}
			default:
				calls = []Call{{Op: fabric.Broadcast, Out: head}}
			}
			gather := Call{Op: fabric.AllGatherV, In: in.Slice(0, lengths[rank]), Out: out, Stride: largeBytes, Lengths: lengths}
			for _, c := range append(calls, gather) {
				c = unwrap(c)
				if err := makeCall(s, c); err != nil {
					return err
				}
				if c.Out == nil {
					continue
				}
				got := make([]byte, largeBytes)
				if err := s.Download(got, head); err != nil {
					return err
				}
				if err := errors.Join(out.intact(), differ(c.Op.String(), got, want, 0, largeBytes)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// unwrap takes the buffers out of their guards: a Subject knows its own only.
func unwrap(c Call) Call {
	for _, b := range []*Buffer{&c.In, &c.Out} {
		if g, ok := (*b).(*guarded); ok {
			*b = g.Buffer
		}
	}
	return c
}

// testRing passes every rank's bytes all the way round, in both directions.
func testRing(t *testing.T, open Opener) {
	for world := 2; world <= maxWorld; world++ {
		subjects := openWorld(t, open, world, SubjectOptions{Group: "ring", Timeout: valuesTimeout})
		together(t, world, time.Minute, func(rank int) error {
			s := subjects[rank]
			for _, n := range []int{1, PartBytes + 1, 1 << 20} {
				for _, step := range []int{1, world - 1} {
					mine := bytes.Repeat([]byte{byte(rank + 1)}, n)
					from, err := holding(s, mine)
					if err != nil {
						return err
					}
					to, err := newGuarded(s, n)
					if err != nil {
						return err
					}
					for i := 1; i <= world; i++ {
						next, previous := (rank+step)%world, (rank-step+world)%world
						if err := makeCall(s, unwrap(Call{Op: fabric.SendRecv, In: from, Peer: next, Out: to, From: previous})); err != nil {
							return err
						}
						origin := ((rank-i*step)%world + world) % world
						if err := to.holds(bytes.Repeat([]byte{byte(origin + 1)}, n)); err != nil {
							return fmt.Errorf("world %d, shift %d of %d by %d: %w", world, i, n, step, err)
						}
						from, to = to, from
					}
				}
			}
			return nil
		})
	}
}

// testFacingSends holds two ranks that Send to each other to the deadline, and the error to the way out.
func testFacingSends(t *testing.T, open Opener) {
	subjects := openWorld(t, open, 2, SubjectOptions{Group: "facing", Timeout: shortTimeout})
	errs := gather(t, 2, time.Minute, func(rank int) error {
		in, err := newGuarded(subjects[rank], facingBytes)
		if err != nil {
			return err
		}
		return makeCall(subjects[rank], unwrap(Call{Op: fabric.Send, In: in, Peer: 1 - rank}))
	})
	_ = expectCause(t, subjects, errs, fabric.ErrTimeout)
	for rank, err := range errs {
		if err != nil && !strings.Contains(err.Error(), "SendRecv") {
			t.Errorf("rank %d: the error of two facing Sends does not name SendRecv: %v", rank, err)
		}
	}
}
