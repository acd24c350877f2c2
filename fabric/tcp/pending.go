package tcp

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	"github.com/hipfabric/hipfabric/fabric/internal/reduce"
)

const (
	// copyGrain is how much of its own block a rank copies between two looks at the sockets.
	copyGrain = 128 << 10
	// fewSockets is up to how many sockets it is cheaper to try each than to ask which is worth it.
	fewSockets = 2
)

// pending is the call in flight. It is reused: a Transport has one.
type pending struct {
	t       *Transport
	call    *fabric.Call
	laid    []*peer // with something to send or to receive
	active  []*peer // of them, unfinished
	sockets int     // of them, when the call began
	moved   uint64  // bytes, both ways
	moves   bool    // the call is what the flows do, and nothing else

	expected [frame.Size]byte
	arena    []byte // where other ranks' contributions land, kept between calls

	ownOut, ownIn []byte // this rank's block for itself: what is left to copy

	inputs   [][]byte // of a reduction, by rank
	views    [][]byte // the run of inputs being combined
	block    []byte   // what this rank combines
	combined int      // bytes of it that are final
	// overwrites says that block is also what is being sent to the others, who must have it first.
	overwrites bool
}

func newPending(t *Transport) pending {
	return pending{t: t, laid: make([]*peer, 0, t.world), active: make([]*peer, 0, t.world), inputs: make([][]byte, t.world), views: make([][]byte, t.world)}
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
	p.copyOwn()
	p.combine()
	if len(p.active) > 0 || len(p.ownIn) > 0 || p.combined < len(p.block) {
		return false, nil
	}
	p.scatterRows()
	return true, nil
}

// copyOwn moves some of this rank's block for itself: a wait is the time to do it in.
func (p *pending) copyOwn() {
	if len(p.ownIn) > 0 {
		n := copy(p.ownOut, p.ownIn[:min(len(p.ownIn), copyGrain)])
		p.ownOut, p.ownIn = p.ownOut[n:], p.ownIn[n:]
		p.moved += uint64(n)
	}
}

// combine reduces, in rank order, what has arrived from every rank, and opens it for sending.
func (p *pending) combine() {
	if p.combined == len(p.block) {
		return
	}
	ready := len(p.block)
	for r := range p.t.peers {
		if r == p.t.rank {
			continue
		}
		f := &p.t.peers[r]
		ready = min(ready, f.contributed())
		if p.overwrites && !f.sentForGood() {
			return
		}
	}
	if ready == p.combined {
		return
	}
	for r, in := range p.inputs {
		p.views[r] = in[p.combined:ready]
	}
	reduce.Combine(p.block[p.combined:ready], p.views, p.call.DType, p.call.Reduce)
	p.combined = ready
	for r := range p.t.peers {
		p.t.peers[r].open = ready
	}
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
			set |= 1 << f.rank
		}
	}
	w.t.waiting.Store(set)
}

// timedOut names the rank that holds the call up: the one that has brought least of what is due, and only when all of
// it is here one that takes nothing.
func (p *pending) timedOut(idle time.Duration) error {
	var slow *peer
	for _, f := range p.active {
		if slow == nil || f.brought() < slow.brought() || f.brought() == slow.brought() && f.rank < slow.rank {
			slow = f
		}
	}
	if slow == nil {
		return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: -1, From: -1, Text: fmt.Sprintf("nothing moved for %v", idle)}
	}
	c := &fabric.Cause{Kind: fabric.ErrTimeout, Peer: slow.rank, From: -1}
	if s := slow.incoming(); s != nil {
		c.Part = uint32(s.ended)
		c.Text = fmt.Sprintf("nothing moved for %v in %v; rank %d waits for rank %d, which has sent %d of %d bytes",
			idle, p.call.Op, p.t.rank, slow.rank, slow.arrived, slow.due)
		return c
	}
	if s := slow.outgoing(); s != nil {
		c.Part = uint32(s.ended)
	}
	c.Text = fmt.Sprintf("nothing moved for %v in %v; rank %d waits for rank %d to take bytes, %d of %d sent",
		idle, p.call.Op, p.t.rank, slow.rank, slow.sent, slow.toSend)
	if slow.outLeft == 0 {
		c.Text = fmt.Sprintf("nothing moved for %v in %v; rank %d has sent all %d bytes and waits for rank %d to say that it has them",
			idle, p.call.Op, p.t.rank, slow.toSend, slow.rank)
	}
	if p.call.Op == fabric.Send {
		c.Text += "; if both ranks are in Send, use SendRecv or Exchange"
	}
	return c
}
