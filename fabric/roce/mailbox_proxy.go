package roce

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	spin "github.com/hipfabric/hipfabric/fabric/internal/link"
)

const (
	pollEvery = 16 // rounds between two looks at completions that no kernel waits for
	restBusy  = 5 * time.Millisecond
	restIdle  = 10 * time.Millisecond
)

// mailProxy posts what the kernels ring for: one goroutine, locked to its thread, from the bring-up's last step until the group fails or
// closes. It spins while something moves; then it looks after rests, which a call that is queued ends.
type mailProxy struct {
	m        *Mailbox
	posted   []uint64 // by target: the last call whose writes are posted
	ended    []uint64 // likewise: the last one that is known to have ended here
	finished uint64   // of all targets
	rounds   uint
	told     bool // completions tell of what has come
	still    time.Time
	said     time.Time // when notes were sent last
	hops     []map[uint32]*mailHop
	started  bool
	parked   atomic.Bool
	wake     chan struct{}
	quiet    chan struct{} // closed once it posts nothing any more, and no HCA touches the letters
	polls    atomic.Uint64
	parks    atomic.Uint64
}

func (p *mailProxy) open(m *Mailbox) {
	p.m, p.posted, p.ended = m, make([]uint64, m.world), make([]uint64, m.world)
	p.wake, p.quiet = make(chan struct{}, 1), make(chan struct{})
}

func (p *mailProxy) start() {
	m := p.m
	p.hops = make([]map[uint32]*mailHop, len(m.wires.hcas))
	for i := range p.hops {
		p.hops[i] = map[uint32]*mailHop{}
	}
	for peer := range m.hops {
		for i := range m.hops[peer] {
			h := &m.hops[peer][i]
			p.hops[h.hca.index][h.qp.Number] = h
			p.told = p.told || h.immediate
		}
	}
	for _, h := range m.wires.hcas {
		h.follow(func(text string) { m.fail(fabric.CauseOf(m.lostHCA(h, text))) })
	}
	p.started = true
	go p.run()
}

// awaitQuiet returns once the proxy has ended; at once where it never began.
func (p *mailProxy) awaitQuiet() {
	if p.started {
		<-p.quiet
	}
}

// rouse ends a rest.
func (p *mailProxy) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// called tells of a call; while the proxy does not rest it finds out by itself.
func (p *mailProxy) called() {
	if p.parked.Load() {
		p.rouse()
	}
}

func (p *mailProxy) run() {
	runtime.LockOSThread() // it spins
	defer close(p.quiet)
	m := p.m
	if len(m.c.CPUs) == 0 {
		defer runtime.UnlockOSThread()
	} else if err := pin(m.c.CPUs); err != nil { // the thread is this goroutine's alone, and ends with it
		m.c.Logger.Warn("roce: the mailbox's proxy runs on any CPU", "group", m.c.Group, "rank", m.rank, "CPUs", m.c.CPUs, "error", err)
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	rounds := lookEvery
	for p.still = time.Now(); m.failed.Load() == nil; {
		moved, err := p.turn(rounds)
		if err != nil {
			m.fail(fabric.CauseOf(err))
			break
		}
		m.look()
		runtime.Gosched()
		now := time.Now()
		if moved {
			p.still, rounds = now, lookEvery
			continue
		}
		p.polls.Add(uint64(rounds))
		still := now.Sub(p.still)
		if err := errors.Join(p.tell(now, still), p.heed()); err != nil {
			m.fail(fabric.CauseOf(err))
			break
		}
		if rounds = lookEvery; still < m.c.SpinFor {
			continue
		}
		if p.rest(timer, still) {
			p.still = time.Now()
		} else {
			rounds = 1
		}
	}
	p.end()
}

// turn takes so many steps.
func (p *mailProxy) turn(rounds int) (moved bool, err error) {
	for range rounds {
		now, err := p.step(rounds == 1)
		if err != nil {
			return moved, err
		}
		moved = moved || now
		if p.m.c.Yield {
			spin.YieldThread()
		}
	}
	return moved, nil
}

// rest says whether it was ended by a call.
func (p *mailProxy) rest(timer *time.Timer, still time.Duration) bool {
	p.parks.Add(1)
	p.parked.Store(true)
	defer p.parked.Store(false)
	if p.busy() {
		timer.Reset(min(max(still/64, restLeast), restBusy))
	} else {
		timer.Reset(restIdle)
	}
	select {
	case <-timer.C:
		return false
	case <-p.wake:
		timer.Stop()
		return true
	}
}

// busy says whether a kernel may ring without a word of Queue's.
func (p *mailProxy) busy() bool { return p.m.captured.Load() || p.m.queued.Load() != p.finished }

// step posts what was rung, and books what has completed: at least now and then.
func (p *mailProxy) step(all bool) (moved bool, err error) {
	for target := range p.posted {
		now, err := p.serve(target)
		if err != nil {
			return moved, err
		}
		moved = moved || now
		if p.ended[target] != p.posted[target] {
			if e := p.m.own.bell(target, bellEnded); e != p.ended[target] {
				p.finished += e - p.ended[target]
				p.ended[target], moved = e, true
				p.m.log.end(target, e)
			}
		}
	}
	if p.rounds++; all || p.told || p.rounds%pollEvery == 0 {
		now, err := p.completions()
		return moved || now, err
	}
	return moved, nil
}

func (p *mailProxy) completions() (any bool, err error) {
	for _, h := range p.m.wires.hcas {
		for {
			n, err := p.m.d.Poll(h.handle, h.done)
			if err != nil {
				return any, p.m.lostHCA(h, "polling: "+err.Error())
			}
			bad := false
			for i := range h.done[:n] {
				c, hop := &h.done[i], p.hops[h.index][h.done[i].QPN]
				switch {
				case hop == nil:
				case c.Receive && !c.Failed:
					if err := p.m.publish(hop, c.Imm); err != nil {
						return true, err
					}
				default:
					hop.completion(c)
					bad = bad || c.Failed
				}
			}
			if bad {
				if err := p.m.failedHop(); err != nil {
					return true, err
				}
			}
			any = any || n > 0
			if n < len(h.done) {
				break
			}
		}
	}
	return any, nil
}

// failedHop is the cause that a failed completion makes: none where its peer has closed its part, of which a kernel that waits for it will tell.
func (m *Mailbox) failedHop() error {
	var flushed error
	for peer := range m.hops {
		for i := range m.hops[peer] {
			h := &m.hops[peer][i]
			err := h.hop.failed()
			switch {
			case err == nil || m.parted(peer):
			case h.failure != "":
				return err
			default:
				flushed = err
			}
		}
	}
	return flushed
}

// end takes the queue pairs down: of a group that has not failed once the peers have what was posted for them.
func (p *mailProxy) end() {
	m := p.m
	m.log.fail()
	if errors.Is(m.failed.Load().Kind, fabric.ErrClosed) {
		p.drain()
	}
	if !flush(m.d, m.wires.hcas) {
		m.c.Logger.Error("roce: the mailbox's queue pairs did not give up their requests in time", "group", m.c.Group, "rank", m.rank, "within", flushWithin)
	}
}

// drain says goodbye, and waits until the peers have all that was posted.
func (p *mailProxy) drain() {
	for target := range p.posted {
		if _, err := p.serve(target); err != nil {
			return
		}
		if p.bye(target) != nil {
			return
		}
	}
	for peer := range p.m.hops {
		for i := range p.m.hops[peer] {
			if p.m.hops[peer][i].mark() != nil {
				return
			}
		}
	}
	for until := time.Now().Add(flushWithin); p.unread() && time.Now().Before(until); spin.YieldThread() {
		if _, err := p.completions(); err != nil {
			return
		}
	}
}

// unread says whether a peer that is there may lack something. One that has closed its part wants nothing more.
func (p *mailProxy) unread() bool {
	for peer := range p.m.hops {
		if p.m.parted(peer) {
			continue
		}
		for i := range p.m.hops[peer] {
			if h := &p.m.hops[peer][i]; h.completed < h.posted && h.hop.failed() == nil {
				return true
			}
		}
	}
	return false
}
