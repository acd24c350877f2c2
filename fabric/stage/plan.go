package stage

import (
	"slices"

	"github.com/hipfabric/hipfabric/fabric"
)

// planned is a plan: the descriptors that a graph's stages were launched with, kept for its replays.
type planned struct {
	g        *kernelsGate
	stream   uintptr
	open     bool
	joined   []uintptr // streams that calls were captured from
	held     []*descriptor
	lists    *lists
	released bool
}

// capture reserves what cannot be allocated while a stream captures.
func (g *kernelsGate) capture(stream uintptr) (fabric.PlanTransport, error) {
	t := g.t
	captures, err := t.capturing(stream)
	switch {
	case err != nil:
		return nil, err
	case captures:
		return nil, capturef("stream %#x is being captured already; make the plan before", stream)
	case g.plans[stream] != nil:
		return nil, fabric.Invalidf("stream %#x has an open plan; end it first", stream)
	}
	p := &planned{g: g, stream: stream, open: true}
	if n := len(g.idle); n > 0 {
		p.lists, g.idle = g.idle[n-1], g.idle[:n-1]
	} else if p.lists, err = g.newLists(); err != nil {
		return nil, err
	}
	g.plans[stream] = p
	g.captured.Store(true)
	t.proxy.called()
	return p, nil
}

// planOf is the plan that a call on a capturing stream joins: the stream's own, or the only open one, which another stream
// of the same capture has.
func (g *kernelsGate) planOf(stream uintptr) *planned {
	if p := g.plans[stream]; p != nil || len(g.plans) != 1 {
		return p
	}
	for _, p := range g.plans {
		return p
	}
	return nil
}

// join puts a call into the graph that a stream captures: all of it or, where there is no room, nothing.
func (g *kernelsGate) join(stream uintptr, c *fabric.Call) error {
	p := g.planOf(stream)
	if p == nil {
		return capturef("stream %#x is being captured and has no open plan; call Capture before the capture begins", stream)
	}
	if !slices.Contains(p.joined, stream) {
		p.joined = append(p.joined, stream)
		g.t.used.Keep(stream)
	}
	e := &entry{}
	e.set(g.t, c)
	parts := e.windows()
	if left := g.table.left(); parts > left {
		return fabric.Unsupportedf("%v needs %d descriptors of the %d that are left; release plans", c.Op, parts, left)
	}
	if len(c.Lengths) > 0 && parts > p.lists.left() {
		return fabric.Unsupportedf("%v needs room for %d parts with lists of the %d that its plan has left; make several plans", c.Op, parts, p.lists.left())
	}
	var before *descriptor
	for k := range parts {
		d := g.table.add()
		p.held = append(p.held, d)
		d.set(e, k, k+1 == parts)
		d.lists = pair{}
		if len(c.Lengths) > 0 {
			d.lists = p.lists.take()
		}
		if _, err := g.launch(stream, d, before); err != nil {
			p.disown(k + 1)
			return capturef("launching %v into the capture of stream %#x, which is void now: %v", c.Op, stream, err)
		}
		before = d
	}
	return nil
}

// disown frees the last n descriptors: a graph with half of their call ends the group, as one of a released plan does.
func (p *planned) disown(n int) {
	p.g.parted.Load()
	keep := len(p.held) - n
	for _, d := range p.held[keep:] {
		p.g.table.drop(d)
	}
	p.held = p.held[:keep]
}

// End seals the plan.
func (p *planned) End() error {
	if p.open {
		p.open = false
		delete(p.g.plans, p.stream)
	}
	return nil
}

// Release frees the descriptors. A graph that is launched all the same names one that is no more, and the group ends.
func (p *planned) Release() error {
	if err := p.g.t.enter(); err != nil {
		return nil // Close frees it all
	}
	defer p.g.t.leave()
	if p.released {
		return nil
	}
	p.released = true
	_ = p.End()
	p.disown(len(p.held))
	for _, stream := range p.joined {
		p.g.t.used.Drop(stream)
	}
	p.joined = nil
	p.lists.used = 0
	p.g.idle = append(p.g.idle, p.lists)
	return nil
}
