package fabric

import "errors"

// failure is the group's cause as far as this rank knows it.
func (c *Collective) failure() *Cause {
	if cause := c.cause.Load(); cause != nil {
		return cause
	}
	if c.o.Arbiter != nil {
		if err := c.o.Arbiter.Cause(); err != nil {
			return c.settle(CauseOf(err))
		}
	}
	return nil
}

// settle keeps the first cause and ends the path with it.
func (c *Collective) settle(cause *Cause) *Cause {
	if c.cause.CompareAndSwap(nil, cause) {
		c.t.Abort(cause)
	}
	return c.cause.Load()
}

// fail turns what ended a call into the error of the call: it asks the Arbiter for the group's cause, which is the same
// on every rank, and keeps what this rank saw beside it.
func (c *Collective) fail(op string, seq uint64, err error) error {
	local := CauseOf(err)
	if c.closed.Load() && c.cause.Load() == nil {
		return c.refuse(op, ErrClosed)
	}
	if local.From < 0 {
		mine := *local
		mine.From = c.rank
		local = &mine
	}
	cause := c.cause.Load()
	if cause == nil {
		cause = local
		if c.o.Arbiter != nil {
			cause = CauseOf(c.o.Arbiter.Report(local))
		}
		cause = c.settle(cause)
	}
	if errors.Is(local.Kind, cause.Kind) && local.Peer == cause.Peer && local.Text == cause.Text {
		local = nil
	}
	return c.opError(op, seq, cause, local)
}

func (c *Collective) opError(op string, seq uint64, cause, local *Cause) error {
	e := &OpError{Op: op, Path: c.t.Kind(), Group: c.o.Group, Rank: c.rank, Peer: cause.Peer, From: cause.From, Seq: seq,
		Part: cause.Part, Err: cause}
	if local != nil {
		e.Local = local
	}
	return e
}

// refuse is an error of call scope: nothing moved.
func (c *Collective) refuse(op string, err error) error {
	c.refused.Add(1)
	return &OpError{Op: op, Path: c.t.Kind(), Group: c.o.Group, Rank: c.rank, Peer: -1, From: -1, Err: err}
}

// Abort ends the group on every rank: the call in flight and every later one return ErrAborted with cause's text, which is all
// of cause that travels. It
// returns once the group's cause is settled, which an earlier failure may have been. Any goroutine, any time.
func (c *Collective) Abort(cause error) {
	text := "no reason given"
	if cause != nil {
		text = cause.Error()
	}
	c.causeMu.Lock()
	defer c.causeMu.Unlock()
	if c.closed.Load() || c.failure() != nil {
		return
	}
	local := &Cause{Kind: ErrAborted, Peer: -1, From: c.rank, Text: text}
	settled := error(local)
	if c.o.Arbiter != nil {
		settled = c.o.Arbiter.Report(local)
	}
	_ = c.settle(CauseOf(settled))
}

// Close ends this rank's use of the path. A call in flight, in another goroutine, returns ErrClosed; later ones too.
// It is idempotent.
func (c *Collective) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.t.Abort(&Cause{Kind: ErrClosed, Peer: -1, From: c.rank})
	return c.t.Close()
}
