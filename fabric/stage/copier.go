package stage

import "github.com/hipfabric/hipfabric/fabric/internal/plan"

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
	c.stream, c.event, c.private, err = d.OpenStream()
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
