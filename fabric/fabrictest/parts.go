package fabrictest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// testParts makes calls in parts, as a path for device memory does over one for host memory.
func testParts(t *testing.T, open Opener) {
	for world := 2; world <= maxWorld; world++ {
		subjects := openWorld(t, open, world, SubjectOptions{Group: "parts", Timeout: valuesTimeout})
		if _, ok := subjects[0].(*host); !ok {
			return // a path that queues cuts its calls itself
		}
		together(t, world, time.Minute, func(rank int) error {
			c := subjects[rank].(*host).c
			for _, piece := range []int{8, 56, PartBytes} {
				for _, err := range []error{partsOfAllReduce(c, piece), partsOfRing(c, piece)} {
					if err != nil {
						return fmt.Errorf("world %d, parts of %d bytes: %w", world, piece, err)
					}
				}
			}
			return nil
		})
	}
	testPartsThatDiffer(t, open)
}

func begin(c *fabric.Collective, call fabric.Call) error {
	s, err := c.Begin(call)
	if err != nil {
		return err
	}
	return s.Wait()
}

// cutBytes is three parts and a short one.
func cutBytes(piece int) int { return 3*piece + 8 }

func partsOfAllReduce(c *fabric.Collective, piece int) error {
	n := cutBytes(piece)
	in, out := bytes.Repeat([]byte{byte(c.Rank() + 1)}, n), make([]byte, n)
	for at, part := 0, uint32(0); at < n; at, part = at+piece, part+1 {
		to := min(at+piece, n)
		err := begin(c, fabric.Call{Op: fabric.AllReduce, DType: fabric.U8, Reduce: fabric.Sum, In: in[at:to], Out: out[at:to], Whole: n, Part: part})
		if err != nil {
			return err
		}
	}
	return differ("out", out, bytes.Repeat([]byte{byte(c.World() * (c.World() + 1) / 2)}, n), 0, n)
}

// partsOfRing sends to the next rank one piece more a rank, so that the two halves of each rank's call end apart.
func partsOfRing(c *fabric.Collective, piece int) error {
	next, previous := (c.Rank()+1)%c.World(), (c.Rank()+c.World()-1)%c.World()
	length := func(from int) int { return piece * from }
	in, out := bytes.Repeat([]byte{byte(c.Rank() + 1)}, length(c.Rank())), make([]byte, length(previous))
	for at, part := 0, uint32(0); part == 0 || at < max(len(in), len(out)); at, part = at+piece, part+1 {
		call := fabric.Call{Op: fabric.SendRecv, Peer: next, From: previous, Whole: len(in), FromWhole: len(out), Part: part}
		call.In, call.Out = cut(in, at, piece), cut(out, at, piece)
		if part > 0 && len(call.In) == 0 {
			call.Peer = -1
		}
		if part > 0 && len(call.Out) == 0 {
			call.From = -1
		}
		if err := begin(c, call); err != nil {
			return err
		}
	}
	return differ("out", out, bytes.Repeat([]byte{byte(previous + 1)}, len(out)), 0, len(out))
}

func cut(b []byte, at, n int) []byte { return b[min(at, len(b)):min(at+n, len(b))] }

// testPartsThatDiffer makes the same part of calls that are not of one length.
func testPartsThatDiffer(t *testing.T, open Opener) {
	n := desyncBytes
	for _, call := range []fabric.Call{
		{Op: fabric.AllReduce, DType: fabric.I32, Reduce: fabric.Sum, In: make([]byte, n), Out: make([]byte, n)},
		{Op: fabric.AllGather, In: make([]byte, n), Out: make([]byte, 2*n)},
		{Op: fabric.Exchange, In: make([]byte, n), Out: make([]byte, n)},
	} {
		subjects := openWorld(t, open, 2, SubjectOptions{Group: "parts", Timeout: valuesTimeout})
		errs := gather(t, 2, time.Minute, func(rank int) error {
			mine := call
			mine.Peer, mine.In, mine.Out = 1-rank, bytes.Clone(call.In), bytes.Clone(call.Out)
			mine.Whole = 2*n + 4*rank
			return begin(subjects[rank].(*host).c, mine)
		})
		_ = expectCause(t, subjects, errs, fabric.ErrDesync)
	}
}
