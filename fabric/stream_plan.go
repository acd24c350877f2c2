package fabric

import "sync/atomic"

// Plan is a group's part in a graph that an engine captures. Calls queued on the captured stream while it is open join the
// graph instead of running, and every replay makes them all again. One goroutine at a time, the one that queues.
type Plan struct {
	c        *StreamCollective
	t        PlanTransport
	ended    atomic.Bool
	released atomic.Bool
}

// Capture prepares for a capture of s, and comes before the engine begins it: what is to be loaded or allocated is. The
// engine then begins its capture, queues calls, ends its capture and calls End. ErrCapture where this path cannot be
// captured; ErrInvalid where s has an open plan.
func (c *StreamCollective) Capture(s Stream) (*Plan, error) {
	if err := c.enter("capture"); err != nil {
		return nil, err
	}
	defer c.leave()
	if err := checkStream(s); err != nil {
		return nil, c.refuse("capture", err)
	}
	t, err := c.t.Capture(s)
	if err != nil {
		return nil, c.ended("capture", 0, err)
	}
	return &Plan{c: c, t: t}, nil
}

// End seals the plan once the engine's capture has ended, well or not: no further call joins. ErrInvalid the second time.
func (p *Plan) End() error {
	if err := p.c.enter("end"); err != nil {
		return err
	}
	defer p.c.leave()
	if p.released.Load() || !p.ended.CompareAndSwap(false, true) {
		return p.c.refuse("end", Invalidf("this plan has ended already"))
	}
	if err := p.t.End(); err != nil {
		return p.c.ended("end", 0, err)
	}
	return nil
}

// Release gives back what the plan holds, once no replay of its graph runs or will: a later one ends the group by name. It
// is idempotent, and good after a failure or Close too.
func (p *Plan) Release() error {
	if p.c.closed.Load() {
		return nil
	}
	if !p.c.queueing.CompareAndSwap(false, true) {
		return p.c.refuse("release", Invalidf("another goroutine is queueing a call of this group; release from the one that queues"))
	}
	defer p.c.leave()
	if !p.released.CompareAndSwap(false, true) {
		return nil
	}
	if err := p.t.Release(); err != nil {
		p.released.Store(false) // it may be asked again
		return p.c.ended("release", 0, err)
	}
	return nil
}
