package fabric

import (
	"context"
	"errors"
	"sync/atomic"
)

// StreamCollective is an engine's face on a StreamTransport: the operations of Collective over device memory, each only
// queued on a stream of the engine's, in order with what the engine has queued there.
//
// A call checks its arguments, queues and returns. It waits only while the path holds as many calls as it can, bounded by
// Options.Timeout without progress. Its device buffers belong to it until the stream has passed it; slices of lengths are
// copied. What a call's error says is found by Wait, and by every later call: after a failure no stream stays parked, and
// the outputs of all calls not yet waited for are undefined. Every error is an *OpError: ErrInvalid, ErrUnsupported,
// ErrCapture and ErrClosed mean that nothing was queued, every other that the group has ended. After ErrDevice,
// which an error can be beside the group's cause, the buffers may still be written until the device has synchronised. One goroutine queues at a time: a second one gets
// ErrInvalid at once. Wait, Abort, Check, Records, Progress and Stats are for any goroutine.
type StreamCollective struct {
	fate
	t     StreamTransport
	world int

	queueing atomic.Bool
	call     Call // the one being queued
}

// NewStream puts a StreamCollective on t, which it owns from then on. The Timeout is the path's to apply.
func NewStream(t StreamTransport, o Options) *StreamCollective {
	o = o.withDefaults()
	return &StreamCollective{fate: fate{path: t, group: o.Group, arbiter: o.Arbiter, rank: t.Rank()}, t: t, world: t.World()}
}

// World is the number of ranks.
func (c *StreamCollective) World() int { return c.world }

// Ordered says whether this path combines in rank order, and so gives identical bits on all ranks.
func (c *StreamCollective) Ordered() bool { return c.t.Ordered() }

// Alloc gives n bytes of memory that this path moves with the fewest copies; Close them when no call uses them. Memory of
// the engine's own works as well.
func (c *StreamCollective) Alloc(n int) (DeviceMemory, error) {
	if _, err := sized("bytes", n, 1); err != nil {
		return nil, c.refuse("alloc", err)
	}
	m, err := c.t.Alloc(n)
	if err != nil {
		return nil, c.refuse("alloc", err)
	}
	return m, nil
}

// Register takes pinned memory of the engine's own, host as the device sees it at device (hipgo.HostBuffer's Bytes and Ptr): where
// the device shares its memory with the CPU, calls then use it in place, as they do Alloc's; elsewhere nothing changes. It stays the
// engine's: Close the result, which frees nothing, when no call uses it, before the memory is freed. Errors: ErrInvalid,
// where the device knows no pinned memory of that length there.
func (c *StreamCollective) Register(host []byte, device DevPtr) (DeviceMemory, error) {
	if err := c.usable("register"); err != nil {
		return nil, err
	}
	if len(host) == 0 || device == 0 {
		return nil, c.refuse("register", Invalidf("%d bytes at %#x to register; at least 1, and the address that the device has for them", len(host), uintptr(device)))
	}
	m, err := c.t.Register(host, device)
	if err != nil {
		return nil, c.ended("register", 0, err)
	}
	return m, nil
}

// Queue queues any call on s, with its buffers in call.Device and everything else as Collective.Begin takes it.
func (c *StreamCollective) Queue(s Stream, call Call) error { return c.queue(s, &call, nil) }

// queue checks a call and hands it over. bad is what its caller has found already.
func (c *StreamCollective) queue(s Stream, call *Call, bad error) error {
	if err := c.enter(call.Op.String()); err != nil {
		return err
	}
	defer c.leave()
	if bad == nil {
		bad = checkStream(s)
	}
	if bad == nil {
		bad = checkDevice(call, c.rank, c.world)
	}
	if bad != nil {
		return c.refuse(call.Op.String(), bad)
	}
	c.call = *call
	err := c.t.Queue(s, &c.call)
	c.call.Lengths, c.call.InLengths = nil, nil
	if err != nil {
		return c.ended(call.Op.String(), 0, err)
	}
	return nil
}

// enter lets one goroutine at a time queue.
func (c *StreamCollective) enter(op string) error {
	if err := c.usable(op); err != nil {
		return err
	}
	if !c.queueing.CompareAndSwap(false, true) {
		return c.refuse(op, Invalidf("another goroutine is queueing a call of this group; queue from one at a time, or use another group"))
	}
	return nil
}

func (c *StreamCollective) leave() { c.queueing.Store(false) }

// ended makes the error of a call of what its path said: a *Cause is the end of the group, all else as its scope says.
func (c *StreamCollective) ended(op string, seq uint64, err error) error {
	var cause *Cause
	if e := (&OpError{Err: err}); !errors.As(err, &cause) && e.Scope() == ScopeCall {
		return c.refuse(op, err)
	}
	return c.fail(op, seq, err)
}

// Wait returns once s has passed everything queued on it so far, and gives the group's cause, nil while it is healthy:
// then the outputs are what they should be. It ends by the device, by the Timeout of the calls on it, by any failure of
// the group, or by ctx, whose error it then returns as it is: that leaves the group and what is queued alone, and Wait may
// be called again.
func (c *StreamCollective) Wait(ctx context.Context, s Stream) error {
	if c.closed.Load() {
		return c.refuse("wait", ErrClosed)
	}
	if err := checkStream(s); err != nil {
		return c.refuse("wait", err)
	}
	err := c.t.Sync(ctx, s)
	var cause *Cause
	if cause = c.failure(); cause != nil && (err == nil || !errors.As(err, new(*Cause))) {
		err = cause
	}
	switch {
	case err == nil:
		return nil
	case cause == nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	}
	op, seq := c.last()
	return c.ended(op, seq, err)
}

// last names the call in which this rank met the failure, else the wait for it.
func (c *StreamCollective) last() (op string, seq uint64) {
	if all := c.t.Records(); len(all) > 0 && all[len(all)-1].State != Done {
		r := &all[len(all)-1]
		return r.Op.String(), r.Seq
	}
	return "wait", 0
}

// Progress is what this rank is doing now, or did last.
func (c *StreamCollective) Progress() Progress {
	p := c.t.Progress()
	if p.Running {
		p.Waiting = c.t.Waiting()
	}
	return p
}

// Records copies the last RecordSlots calls that streams have reached, oldest first; a call that its path moves in parts
// has one a part.
func (c *StreamCollective) Records() []Record { return c.t.Records() }

// Stats reads the counters.
func (c *StreamCollective) Stats() Stats {
	s := c.t.Stats()
	s.Refused += c.refused.Load()
	return s
}
