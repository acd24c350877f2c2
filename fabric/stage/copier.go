package stage

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// copier is one of a proxy's two copy streams. One job has it at a time: until its copies have landed, or are known to.
type copier struct {
	d             Driver
	stream, event uintptr
	private       bool // the stream has a hardware queue of its own
	job           *job // whose copies are, or may be, on the way; nil: free
	owner         *Transport
	recorded      bool // the event comes after all copies
}

func (c *copier) open(d Driver) (err error) {
	c.d = d
	c.stream, c.event, c.private, err = d.OpenStream(false)
	return err
}

// start queues pieces, and an event behind them. After an error some may be queued all the same.
func (c *copier) start(p *Proxy, j *job, pieces []plan.Piece, at func(plan.Piece) (dst, src uintptr)) error {
	c.job, c.owner, c.recorded = j, p.stepping, false
	for _, piece := range pieces {
		dst, src := at(piece)
		p.enter(inCopy)
		if err := c.d.Copy(c.stream, dst, src, piece.Bytes); err != nil {
			return err
		}
	}
	return c.record(p)
}

func (c *copier) record(p *Proxy) error {
	p.enter(inRecord)
	if err := c.d.Record(c.stream, c.event); err != nil {
		return err
	}
	c.recorded = true
	return nil
}

// landed says whether the job's copies have, and frees the stream then.
func (c *copier) landed(p *Proxy) (bool, error) {
	p.enter(inQuery)
	done, err := c.d.Query(c.event)
	if done && err == nil {
		c.job, c.owner = nil, nil
	}
	return done && err == nil, err
}

// settle tries to learn that what an ended group has left here has landed. The stream is in order, so an event recorded
// later than a failed one proves the same.
func (c *copier) settle(p *Proxy) bool {
	if !c.recorded && c.record(p) != nil {
		return false
	}
	done, err := c.landed(p)
	return done && err == nil
}

// copied starts a job's copies once the copy stream is free, and says whether they have landed.
func (t *Transport) copied(c *copier, j *job, start func(*Transport, *job) (none bool, err error)) bool {
	if !j.copying {
		if c.job != nil {
			t.late(c, j)
			return false
		}
		none, err := start(t, j)
		if none {
			return true
		}
		j.copying = true
		if err != nil {
			t.copyFailed(j, "queueing a copy", err)
			return false
		}
	}
	done, err := c.landed(t.proxy)
	if err != nil {
		t.copyFailed(j, "asking after a copy, which may still land,", err)
		return false
	}
	if !done {
		t.late(c, j)
		return false
	}
	j.copying = false
	return true
}

// late ends the group when a copy has taken as long as a peer may; a little less, so that the rank whose device hangs is
// the one that says so.
func (t *Transport) late(c *copier, j *job) {
	if limit := t.c.Timeout - t.c.Timeout/8; limit >= 0 && t.proxy.now.Sub(j.since) >= limit {
		text := fmt.Sprintf("rank %d: a copy of %v part %d on %v has not landed within %v, and still may", t.rank, j.e.call.Op, j.part, t.d, limit)
		if !c.private {
			text += "; its stream shares a hardware queue with others, where the library has no streams with one of their own: a stream that " +
				"waits on it holds up all, so use no more streams than queues (GPU_MAX_HW_QUEUES)"
		}
		t.fail(t.deviceCause(text, nil))
	}
}

func (t *Transport) copyFailed(j *job, what string, err error) {
	t.fail(t.deviceCause(fmt.Sprintf("rank %d: %s of %v part %d on %v: %v", t.rank, what, j.e.call.Op, j.part, t.d, err), err))
}

func (t *Transport) deviceCause(text string, err error) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrDevice, Peer: t.rank, From: t.rank, Text: text, Err: err}
}
