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
	// partWithin is how long who has said goodbye waits until the other, who has too, has heard of it: else that one tries for long to reach it.
	partWithin = 10 * time.Millisecond
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
	hcas     []*hca
	hops     []map[uint32]*mailHop // by HCA
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
	p.hcas = append(append(p.hcas, m.wires.hcas...), m.relayHCAs...)
	for _, h := range p.hcas {
		hops := map[uint32]*mailHop{}
		for i := range m.ends {
			if e := &m.ends[i]; e.hca == h {
				hops[e.qp.Number] = e
				p.told = p.told || e.immediate
			}
		}
		p.hops = append(p.hops, hops)
	}
	for _, h := range p.hcas {
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
		if err == nil {
			err = p.heed()
		}
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
		if err := p.tell(now, still); err != nil {
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

// busy says whether there may be something to do without a word of Queue's.
func (p *mailProxy) busy() bool {
	return len(p.m.ways) > 0 || p.m.captured.Load() || p.m.queued.Load() != p.finished
}

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
		if err != nil {
			return moved, err
		}
		moved = moved || now
	}
	now, err := p.pass()
	return moved || now, err
}

func (p *mailProxy) completions() (any bool, err error) {
	for i, h := range p.hcas {
		for {
			n, err := p.m.d.Poll(h.handle, h.done)
			if err != nil {
				return any, p.m.lostHCA(h, "polling: "+err.Error())
			}
			bad := false
			for k := range h.done[:n] {
				c := &h.done[k]
				hop := p.hops[i][c.QPN]
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
	for i := range m.ends {
		h := &m.ends[i]
		err := h.hop.failed()
		switch {
		case err == nil || m.parted(h.peer) || m.parted(h.rank):
		case h.failure != "":
			return err
		default:
			flushed = err
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
	if !flush(m.d, p.hcas) {
		m.c.Logger.Error("roce: the mailbox's queue pairs did not give up their requests in time", "group", m.c.Group, "rank", m.rank, "within", flushWithin)
	}
}

// drain says goodbye, and waits until the peers have all that was posted, and until those whose stripes are relayed do without it.
func (p *mailProxy) drain() {
	for target := range p.posted {
		if _, err := p.serve(target); err != nil {
			return
		}
		if p.bye(target) != nil {
			return
		}
	}
	marked, alone := false, time.Time{}
	for until := time.Now().Add(flushWithin); time.Now().Before(until); spin.YieldThread() {
		if _, err := p.completions(); err != nil {
			return
		}
		if _, err := p.pass(); err != nil {
			return
		}
		if !marked && !p.needed() {
			if marked = true; !p.markAll() {
				return
			}
		}
		if !marked {
			continue
		}
		all, wanted := p.unread()
		if all || wanted && !alone.IsZero() && time.Since(alone) > partWithin {
			return
		}
		if wanted && alone.IsZero() {
			alone = time.Now()
		}
	}
}

// markAll posts a request behind all others that tells when they are over.
func (p *mailProxy) markAll() bool {
	for i := range p.m.ends {
		if p.m.ends[i].mark() != nil {
			return false
		}
	}
	return true
}

// needed says whether another rank's stripes come by here, and its goodbye has not.
func (p *mailProxy) needed() bool {
	for _, w := range p.m.ways {
		if w.over != [classes]bool{true, true} {
			return true
		}
	}
	return false
}

// unread says whether all peers have all, and whether those do that want it: one that has closed its part wants nothing more, but for its own
// sake is left in peace.
func (p *mailProxy) unread() (all, wanted bool) {
	all, wanted = true, true
	for i := range p.m.ends {
		h := &p.m.ends[i]
		if h.completed >= h.posted || h.hop.failed() != nil {
			continue
		}
		if all = false; !p.m.parted(h.rank) {
			wanted = false
		}
	}
	return all, wanted
}

// pass relays.
func (p *mailProxy) pass() (moved bool, err error) {
	for _, w := range p.m.ways {
		now, err := w.pass(p.m)
		if err != nil {
			return moved, err
		}
		moved = moved || now
	}
	return moved, nil
}
