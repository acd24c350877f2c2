package roce

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hipfabric/hipfabric/fabric"
)

// mailPlan is a plan: epochs are the device's, so that a graph with calls of the mailbox needs nothing but memory that stays.
type mailPlan struct {
	m              *Mailbox
	stream         uintptr
	rest           fabric.PlanTransport // nil where the other path cannot be captured
	joined         []uintptr            // streams that calls were captured from
	ended, dropped bool
}

// Capture prepares for the engine's own capture of s, before that begins. Where the other path cannot be captured, its calls are refused
// while s captures, and those of the mailbox are not.
func (m *Mailbox) Capture(s fabric.Stream) (fabric.PlanTransport, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.leave()
	stream := uintptr(s)
	captures, err := m.capturing(stream)
	switch {
	case err != nil:
		return nil, err
	case captures:
		return nil, capturef("stream %#x is being captured already; make the plan before", stream)
	case m.plans[stream] != nil:
		return nil, fabric.Invalidf("stream %#x has an open plan; end it first", stream)
	}
	p := &mailPlan{m: m, stream: stream}
	if p.rest, err = m.rest.Capture(s); errors.Is(err, fabric.ErrCapture) && m.world > 1 {
		p.rest, err = nil, nil
	}
	if err != nil {
		return nil, m.along(err)
	}
	m.plans[stream] = p
	m.captured.Store(true)
	m.proxy.called()
	return p, nil
}

// planOf is the plan that a call on a capturing stream joins: the stream's own, or the only open one, which another stream
// of the same capture has.
func (m *Mailbox) planOf(stream uintptr) *mailPlan {
	if p := m.plans[stream]; p != nil || len(m.plans) != 1 {
		return p
	}
	for _, p := range m.plans {
		return p
	}
	return nil
}

// join puts a call into the graph that a stream captures.
func (m *Mailbox) join(stream uintptr, c *fabric.Call, kind int) error {
	p := m.planOf(stream)
	if p == nil {
		return capturef("stream %#x is being captured and has no open plan; call Capture before the capture begins", stream)
	}
	m.arguments(c, kind)
	if err := m.launch(stream, kernelOf(c.Op), c.Device.InBytes); err != nil {
		return capturef("launching %v into the capture of stream %#x, which is void now: %v", c.Op, stream, err)
	}
	if !slices.Contains(p.joined, stream) {
		p.joined = append(p.joined, stream)
		m.used.Keep(stream)
	}
	return nil
}

// End seals the plan.
func (p *mailPlan) End() error {
	if p.ended {
		return nil
	}
	p.ended = true
	delete(p.m.plans, p.stream)
	if p.rest != nil {
		return p.rest.End()
	}
	return nil
}

// Release gives back what the other path holds for the graph, which then may not be launched any more.
func (p *mailPlan) Release() error {
	if err := p.m.enter(); err != nil {
		return nil // Close frees it all
	}
	defer p.m.leave()
	if p.dropped {
		return nil
	}
	_ = p.End()
	if p.rest != nil {
		if err := p.rest.Release(); err != nil {
			return p.m.along(err)
		}
	}
	p.dropped = true
	for _, stream := range p.joined {
		p.m.used.Drop(stream)
	}
	return nil
}

func capturef(format string, args ...any) error { return &captureError{fmt.Sprintf(format, args...)} }

type captureError struct{ text string }

func (e *captureError) Error() string { return fabric.ErrCapture.Error() + ": " + e.text }
func (e *captureError) Unwrap() error { return fabric.ErrCapture }
