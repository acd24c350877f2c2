package fabrictest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// desyncBytes is a length that every operation and dtype takes.
const desyncBytes = 48

// side is one rank's half of two that disagree, in a world of 2.
type side struct {
	op   fabric.Op
	root bool // Broadcast: this rank is the root
}

func (s side) String() string {
	if s.op != fabric.Broadcast {
		return s.op.String()
	}
	if s.root {
		return "broadcast from itself"
	}
	return "broadcast from the other"
}

// gives says whether this side only sends.
func (s side) gives() bool { return s.op == fabric.Send || s.root }

// takes says whether this side only receives.
func (s side) takes() bool { return s.op == fabric.Recv || (s.op == fabric.Broadcast && !s.root) }

func sides() []side {
	var all []side
	for _, op := range fabric.Ops() {
		all = append(all, side{op: op})
	}
	return append(all, side{fabric.Broadcast, true})
}

// The pairs of sides that cannot be seen at once, since no byte of one meets the other's call. All others can.
//
//	rank 0 \ rank 1         recv     broadcast from the other   send    broadcast from itself
//	recv                    timeout  timeout                    match   desync
//	broadcast from the other timeout timeout                    desync  match
//	send                    match    desync                     later   later
//	broadcast from itself   desync   match                      later   later
//
// Timeout: both only wait. Later: both only send, which a path may do ahead; the next call that meets the bytes sees it.
func outcome(a, b side) string {
	switch {
	case a.takes() && b.takes():
		return "timeout"
	case a.gives() && b.gives():
		return "later"
	case a == b,
		a.op == fabric.Broadcast && b.op == fabric.Broadcast,
		a.op == fabric.Send && b.op == fabric.Recv,
		a.op == fabric.Recv && b.op == fabric.Send:
		return "match"
	default:
		return "desync"
	}
}

// callOf is what a rank of two does on its side.
func (s side) callOf(rank int) shape {
	n, peer := desyncBytes, 1-rank
	c := Call{Op: s.op, Peer: peer, From: peer}
	switch s.op {
	case fabric.AllReduce:
		c.DType, c.Reduce = fabric.I32, fabric.Sum
		return shape{c, n, n}
	case fabric.ReduceScatter:
		c.DType, c.Reduce = fabric.I32, fabric.Sum
		return shape{c, n, n / 2}
	case fabric.AllGather:
		return shape{c, n, 2 * n}
	case fabric.AllGatherV:
		c.Stride, c.Lengths = n, []int{n, n}
		return shape{c, n, 2 * n}
	case fabric.AllGatherRows:
		c.RowBytes = 8
		return shape{c, n, 2 * n}
	case fabric.Broadcast:
		c.Root = peer
		if s.root {
			c.Root = rank
			return shape{c, n, -1}
		}
		return shape{c, -1, n}
	case fabric.AllToAllV:
		c.Lengths, c.InLengths = []int{n / 2, n / 2}, []int{n / 2, n / 2}
		return shape{c, n, n}
	case fabric.Send:
		return shape{c, n, -1}
	case fabric.Recv:
		return shape{c, -1, n}
	case fabric.Barrier:
		return shape{c, -1, -1}
	default:
		return shape{c, n, n}
	}
}

// shape is a call and how long its buffers are; -1 for none.
type shape struct {
	Call
	in, out int
}

// makeShape makes calls in order until one fails, and holds every out's guards to account.
func makeShape(s Subject, shapes ...shape) error {
	for _, c := range shapes {
		var outs []*guarded
		for _, b := range []struct {
			n  int
			to *Buffer
		}{{c.in, &c.In}, {c.out, &c.Out}} {
			if b.n < 0 {
				continue
			}
			g, err := newGuarded(s, b.n)
			if err != nil {
				return err
			}
			*b.to = g.Buffer
			outs = append(outs, g)
		}
		err := makeCall(s, c.Call)
		for _, g := range outs {
			if e := g.intact(); e != nil {
				return errors.Join(err, e)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var barrier = shape{Call{Op: fabric.Barrier}, -1, -1}

func testDesyncOfOperations(t *testing.T, open Opener) {
	for _, a := range sides() {
		for _, b := range sides() {
			want := outcome(a, b)
			if want == "match" {
				continue
			}
			t.Run(fmt.Sprintf("%v against %v", a, b), func(t *testing.T) {
				o := SubjectOptions{Group: "desync", Timeout: valuesTimeout}
				if want == "timeout" {
					o.Timeout = shortTimeout
				}
				subjects := openWorld(t, open, 2, o)
				halves := []side{a, b}
				errs := gather(t, 2, time.Minute, func(rank int) error {
					return makeShape(subjects[rank], halves[rank].callOf(rank), barrier)
				})
				if want == "timeout" {
					_ = expectCause(t, subjects, errs, fabric.ErrTimeout)
					return
				}
				for rank, half := range halves {
					// A rank that only sent may have met the other's Barrier with its own: its next call tells it.
					if errs[rank] == nil && half.gives() {
						errs[rank] = makeShape(subjects[rank], barrier)
					}
				}
				cause := expectCause(t, subjects, errs, fabric.ErrDesync)
				if want == "desync" {
					namesCalls(t, cause, halves)
				}
			})
		}
	}
}

// namesCalls holds a desync's text to both ranks and both calls. A Recv may be told by the send that it awaits; a rank
// that only sends may already be in its next call.
func namesCalls(t *testing.T, cause *fabric.Cause, halves []side) {
	t.Helper()
	for rank, half := range halves {
		name := half.op.String()
		named := strings.Contains(cause.Text, name) || (half.op == fabric.Recv && strings.Contains(cause.Text, "send")) ||
			(half.gives() && strings.Contains(cause.Text, fabric.Barrier.String()))
		if !named || !strings.Contains(cause.Text, fmt.Sprintf("rank %d", rank)) {
			t.Errorf("the cause does not name rank %d and its %s: %s", rank, name, cause.Text)
		}
	}
}

// testDesyncOfFields lets one of three ranks make the same call with one field that differs.
func testDesyncOfFields(t *testing.T, open Opener) {
	for _, n := range []int{desyncBytes, 3 * PartBytes} {
		for _, f := range fields(n) {
			t.Run(fmt.Sprintf("%s of %d bytes", f.name, n), func(t *testing.T) {
				subjects := openWorld(t, open, 3, SubjectOptions{Group: "desync", Timeout: valuesTimeout})
				errs := gather(t, 3, time.Minute, func(rank int) error {
					return makeShape(subjects[rank], append(f.calls(rank), barrier)...)
				})
				for rank := range errs {
					// A rank that only sent too much may have met every Barrier: its next call tells it.
					if errs[rank] == nil {
						errs[rank] = makeShape(subjects[rank], barrier)
					}
				}
				_ = expectCause(t, subjects, errs, fabric.ErrDesync)
			})
		}
	}
}

// field is a way to disagree: what each of three ranks calls, rank 1 differently, before a Barrier.
type field struct {
	name  string
	calls func(rank int) []shape
}

func fields(n int) []field {
	odd := func(rank int) bool { return rank == 1 }
	pick := func(rank, usual, other int) int {
		if odd(rank) {
			return other
		}
		return usual
	}
	// one makes a field of one call a rank.
	one := func(name string, call func(rank int) shape) field {
		return field{name, func(rank int) []shape { return []shape{call(rank)} }}
	}
	reduction := func(op fabric.Op, bytes int, dt fabric.DType, r fabric.ReduceOp) shape {
		in := bytes
		if op == fabric.ReduceScatter {
			in = 3 * bytes
		}
		return shape{Call{Op: op, DType: dt, Reduce: r}, in, bytes}
	}
	var all []field
	for _, op := range []fabric.Op{fabric.AllReduce, fabric.ReduceScatter} {
		all = append(all,
			one(op.String()+" bytes", func(rank int) shape { return reduction(op, pick(rank, n, n+4), fabric.I32, fabric.Sum) }),
			one(op.String()+" dtype", func(rank int) shape {
				return reduction(op, n, fabric.DType(pick(rank, int(fabric.I32), int(fabric.F32))), fabric.Sum)
			}),
			one(op.String()+" reduction", func(rank int) shape {
				return reduction(op, n, fabric.I32, fabric.ReduceOp(pick(rank, int(fabric.Sum), int(fabric.Max))))
			}))
	}
	return append(all,
		one("all-gather bytes", func(rank int) shape {
			k := pick(rank, n, n+1)
			return shape{Call{Op: fabric.AllGather}, k, 3 * k}
		}),
		one("all-gather-v lengths", func(rank int) shape {
			return shape{Call{Op: fabric.AllGatherV, Stride: n, Lengths: []int{n, n, pick(rank, n-1, n)}}, pick(rank/2, n, n-1), 3 * n}
		}),
		one("all-gather-v stride", func(rank int) shape {
			k := pick(rank, n, n+8)
			return shape{Call{Op: fabric.AllGatherV, Stride: k, Lengths: []int{n, n, n}}, n, 3 * k}
		}),
		one("all-gather-rows row", func(rank int) shape {
			return shape{Call{Op: fabric.AllGatherRows, RowBytes: pick(rank, 8, 16)}, n, 3 * n}
		}),
		one("broadcast bytes", func(rank int) shape {
			if rank == 0 {
				return shape{Call{Op: fabric.Broadcast}, n, -1}
			}
			return shape{Call{Op: fabric.Broadcast}, -1, pick(rank, n, n+1)}
		}),
		one("broadcast root", func(rank int) shape {
			if rank == 0 {
				return shape{Call{Op: fabric.Broadcast}, n, -1}
			}
			return shape{Call{Op: fabric.Broadcast, Root: pick(rank, 0, 2)}, -1, n}
		}),
		one("all-to-all bytes", func(rank int) shape {
			k := pick(rank, 3*n, 3*n+3)
			return shape{Call{Op: fabric.AllToAll}, k, k}
		}),
		one("all-to-all-v lengths", func(rank int) shape {
			out := []int{pick(rank, n, n+1), n, n} // rank 0 sends n
			return shape{Call{Op: fabric.AllToAllV, Lengths: out, InLengths: []int{n, n, n}}, 3 * n, out[0] + 2*n}
		}),
		field{"exchange bytes", func(rank int) []shape {
			if rank == 2 {
				return nil
			}
			k := pick(rank, n, n+1)
			return []shape{{Call{Op: fabric.Exchange, Peer: 1 - rank}, k, k}}
		}},
		one("send-recv bytes", func(rank int) shape {
			return shape{Call{Op: fabric.SendRecv, Peer: (rank + 1) % 3, From: (rank + 2) % 3}, n, pick(rank, n, n+1)}
		}),
		field{"send bytes", func(rank int) []shape {
			return [][]shape{{{Call{Op: fabric.Send, Peer: 1}, n, -1}}, {{Call{Op: fabric.Recv, From: 0}, -1, n + 1}}, nil}[rank]
		}},
		field{"recv from another", func(rank int) []shape {
			return [][]shape{{{Call{Op: fabric.Send, Peer: 1}, n, -1}}, {{Call{Op: fabric.Recv, From: 2}, -1, n}}, nil}[rank]
		}},
		field{"one send too many", func(rank int) []shape {
			send, recv := shape{Call{Op: fabric.Send, Peer: 1}, n, -1}, shape{Call{Op: fabric.Recv, From: 0}, -1, n}
			return [][]shape{{send, send}, {recv}, nil}[rank]
		}},
	)
}

// expectCause holds every rank to one cause of this kind, in the calls' errors, in Check and in every later call.
func expectCause(t *testing.T, subjects []Subject, errs []error, kind error) *fabric.Cause {
	t.Helper()
	var first *fabric.Cause
	for rank, err := range errs {
		again := makeShape(subjects[rank], barrier)
		for what, err := range map[string]error{"its call": err, "check": subjects[rank].Check(), "a later call": again} {
			if !errors.Is(err, kind) {
				t.Fatalf("rank %d: %s gave %v; %v is due", rank, what, err, kind)
			}
			if e := WalkError(err); e != nil {
				t.Errorf("rank %d: %s: %v", rank, what, e)
			}
			cause := fabric.CauseOf(err)
			if first == nil {
				first = cause
			}
			if !errors.Is(cause.Kind, first.Kind) || cause.Peer != first.Peer || cause.From != first.From || cause.Text != first.Text {
				t.Errorf("rank %d: %s has another cause than the first rank's:\n%v (peer %d, from %d)\n%v (peer %d, from %d)",
					rank, what, cause, cause.Peer, cause.From, first, first.Peer, first.From)
			}
		}
	}
	return first
}
