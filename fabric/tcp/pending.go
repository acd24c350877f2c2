package tcp

import (
	"errors"
	"os"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
)

// fewSockets is up to how many sockets it is cheaper to try each than to ask which is worth it.
const fewSockets = 2

// pending is the call in flight. It is reused: a Transport has one.
type pending struct {
	t       *Transport
	layout  *flow.Layout
	laid    []*peer // with something to send or to receive
	active  []*peer // of them, unfinished
	sockets int     // of them, when the call began
	moved   uint64  // bytes, both ways
	moves   bool    // the call is what the flows do, and nothing else
}

func newPending(t *Transport) pending {
	return pending{t: t, layout: &t.layout, laid: make([]*peer, 0, t.world), active: make([]*peer, 0, t.world)}
}

// begin lays a call out over the peers.
func (p *pending) begin(c *fabric.Call) {
	p.moved, p.active, p.sockets = 0, p.active[:0], 0
	for _, f := range p.laid {
		f.begin()
	}
	p.laid = p.laid[:0]
	p.layout.Begin(c)
	p.moves = p.layout.OnlyMoves()
	for _, f := range p.laid {
		f.orderCall()
		p.active = append(p.active, f)
		p.sockets += f.wake()
	}
}

// ends are the peers, as the layout fills them.
type ends pending

func (e *ends) peer(r int) *peer {
	f := &e.t.peers[r]
	if f.Outs+f.Ins == 0 {
		e.laid = append(e.laid, f)
	}
	return f
}

func (e *ends) Send(r int, s flow.Span)    { e.peer(r).send(s) }
func (e *ends) Receive(r int, s flow.Span) { e.peer(r).receive(s) }
func (e *ends) SentForGood(r int) bool     { return e.t.peers[r].sentForGood() }

// wake readies the lanes for a call, and counts them.
func (f *peer) wake() int {
	for _, l := range f.lanes {
		if l.held = false; l.conn != nil {
			l.conn.Readable, l.conn.Writable = true, true
		}
	}
	return f.up
}

// step makes all the progress that can be made now.
func (p *pending) step() (done bool, err error) {
	if p.t.mendDue.Load() {
		p.t.mendAll()
	}
	before := p.moved
	done, err = p.round()
	if !done && err == nil && p.moved == before && p.sockets > fewSockets && p.t.group.Refresh() {
		return p.round()
	}
	return done, err
}

// round tries once everything that can make progress.
func (p *pending) round() (done bool, err error) {
	few := p.sockets <= fewSockets
	for i := 0; i < len(p.active); {
		f := p.active[i]
		if f.wide && f.up == 0 {
			return true, p.t.noLane(f)
		}
		if err := p.send(f, few); err != nil {
			return true, err
		}
		if err := p.receive(f, few); err != nil {
			return true, err
		}
		if f.finished() {
			f.pause()
			last := len(p.active) - 1
			p.active[i], p.active = p.active[last], p.active[:last]
			continue
		}
		i++
	}
	if p.moves {
		return len(p.active) == 0, nil
	}
	bytes, done := p.layout.Advance()
	p.moved += uint64(bytes)
	if len(p.active) > 0 || !done {
		return false, nil
	}
	p.layout.Finish()
	return true, nil
}

// Poll makes progress without blocking.
func (p *pending) Poll() (bool, error) {
	if err := p.t.enter(); err != nil {
		return true, err
	}
	defer p.t.leave()
	if p.t.group != nil {
		if err := p.t.group.Aborted(); err != nil {
			return true, p.t.causeOf(err)
		}
	}
	before := p.moved
	done, err := p.step()
	if p.moved != before && p.t.waiting.Load() != 0 {
		(*work)(p).Stalled(false)
	}
	return done, err
}

// Progress grows as bytes move.
func (p *pending) Progress() uint64 { return p.moved }

// Stall publishes whom the call waits for, until something moves.
func (p *pending) Stall(idle time.Duration) error {
	if err := p.t.enter(); err != nil {
		return err
	}
	defer p.t.leave()
	(*work)(p).Stalled(true)
	return p.timedOut(idle)
}

// Wait spins, then parks, until the call is done; fabric.Pending says the rest.
func (p *pending) Wait(idle time.Duration) error {
	if err := p.t.enter(); err != nil {
		return err
	}
	defer p.t.leave()
	if p.t.group == nil {
		for {
			if done, err := p.step(); done || err != nil {
				return err
			}
		}
	}
	err := p.t.group.Wait((*work)(p), idle)
	if err == nil {
		return nil
	}
	var cause *fabric.Cause
	if !errors.As(err, &cause) && errors.Is(err, os.ErrDeadlineExceeded) {
		return p.timedOut(idle)
	}
	return p.t.causeOf(err)
}

// work is a pending as link polls it, by the driver itself.
type work pending

func (w *work) Poll() (bool, error) { return (*pending)(w).step() }
func (w *work) Progress() uint64    { return w.moved }

// Stalled publishes whom the call waits for.
func (w *work) Stalled(yes bool) {
	set := uint64(0)
	if yes {
		for _, f := range w.active {
			set |= 1 << f.Peer
		}
	}
	w.t.waiting.Store(set)
}

// timedOut names the rank that holds the call up.
func (p *pending) timedOut(idle time.Duration) error {
	return p.layout.TimedOut(idle, func(yield func(*flow.Flow) bool) {
		for _, f := range p.active {
			if !yield(&f.Flow) {
				return
			}
		}
	})
}
