package stage

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

const (
	// spinFor is how long the proxy polls after the last progress before it gives its core away, and moveFor while a part is
	// under way: a slow wire takes a few milliseconds for one.
	spinFor    = time.Millisecond
	moveFor    = 16 * time.Millisecond
	clockEvery = 16 // idle rounds between looks at the clock
	turnEvery  = 64 // idle rounds between turns for this process's other goroutines
	// A proxy that waits for a stream cannot be woken by it: it looks again after a part of the time that it has waited,
	// within these bounds.
	restPart  = 64
	restLeast = 50 * time.Microsecond
	restMost  = 4 * time.Millisecond
)

// Proxy acts for the streams of a device: one goroutine, locked to its thread, that drives all groups' calls with two copy
// streams of its own. It spins for a millisecond after the last progress, longer while something moves. Then it looks now and
// then while a call is queued or a captured graph may be replayed, and sleeps while there is neither.
type Proxy struct {
	d        Driver
	down, up copier
	now      time.Time  // as of the last look at the clock
	stepping *Transport // whose step this is

	groups atomic.Pointer[[]*Transport]
	mu     sync.Mutex // for changes of groups
	ending bool       // guarded by mu: Close was called
	over   sync.Once
	endErr error

	yield  atomic.Bool // a group of it asked for that
	wake   chan struct{}
	parked atomic.Bool
	beat   atomic.Uint64 // rounds
	at     atomic.Int32  // the Driver's method that the proxy was in last
	stop   chan struct{}
	loops  sync.WaitGroup
}

const (
	inCopy = iota + 1
	inRecord
	inQuery
)

var methodNames = [...]string{0: "the wire", inCopy: "Copy", inRecord: "Record", inQuery: "Query"}

func (p *Proxy) enter(method int32) { p.at.Store(method) }

// NewProxy opens the copy streams of a device and starts its proxy. Not while a stream of the device captures, nor while
// one is parked: some drivers cannot open a stream then.
func NewProxy(d Driver) (*Proxy, error) {
	if d == nil {
		return nil, fabric.Invalidf("a proxy needs a Driver")
	}
	p := &Proxy{d: d, now: time.Now(), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	p.groups.Store(&[]*Transport{})
	err := p.down.open(d)
	if err == nil {
		if err = p.up.open(d); err != nil {
			err = errors.Join(err, d.CloseStream(p.down.stream, p.down.event))
		}
	}
	if err != nil {
		return nil, &deviceError{fmt.Sprintf("a copy stream on %v: %v", d, err), err}
	}
	p.loops.Go(p.run)
	p.loops.Go(p.watch)
	return p, nil
}

func (p *Proxy) add(t *Transport) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		return fabric.Invalidf("the proxy of %v is closed", p.d)
	}
	if t.c.Yield {
		p.yield.Store(true)
	}
	groups := append(slices.Clone(*p.groups.Load()), t)
	p.groups.Store(&groups)
	p.rouse()
	return nil
}

// remove says whether that was the last group of a closed proxy, which then is to end.
func (p *Proxy) remove(t *Transport) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	groups := slices.DeleteFunc(slices.Clone(*p.groups.Load()), func(g *Transport) bool { return g == t })
	p.groups.Store(&groups)
	return p.ending && len(groups) == 0
}

// Close ends the proxy, at once or with the last group that uses it, whose Close may be waiting for the device; it has no
// further ones. It is idempotent.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.ending = true
	left := len(*p.groups.Load())
	p.mu.Unlock()
	if left > 0 {
		return nil
	}
	return p.end()
}

func (p *Proxy) end() error {
	p.over.Do(func() {
		close(p.stop)
		p.loops.Wait()
		p.endErr = errors.Join(p.d.CloseStream(p.down.stream, p.down.event), p.d.CloseStream(p.up.stream, p.up.event))
	})
	return p.endErr
}

// rouse ends a rest.
func (p *Proxy) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// called tells the proxy of a call; while it does not sleep it finds out by itself.
func (p *Proxy) called() {
	if p.parked.Load() {
		p.rouse()
	}
}

func (p *Proxy) run() {
	runtime.LockOSThread() // drivers keep state by thread
	defer runtime.UnlockOSThread()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	moved, rounds := time.Now(), 0 // since the last progress
	for {
		p.beat.Add(1)
		if p.round() {
			rounds = 0
			continue
		}
		if rounds == 0 {
			p.now = time.Now()
			moved = p.now
		}
		if rounds++; rounds%turnEvery == 0 {
			runtime.Gosched()
		}
		if p.yield.Load() {
			link.YieldThread()
		}
		if rounds%clockEvery != 0 {
			continue
		}
		p.now = time.Now()
		if idle := p.now.Sub(moved); idle >= spinFor && (idle >= moveFor || !p.moving()) && !p.rest(timer, idle) {
			return
		}
	}
}

// round makes a step of every group.
func (p *Proxy) round() (moved bool) {
	for _, t := range *p.groups.Load() {
		p.stepping = t
		if t.step() {
			moved = true
		}
	}
	return moved
}

func restAfter(idle time.Duration) time.Duration { return min(max(idle/restPart, restLeast), restMost) }

// rest waits for a while, or for a call; false once the proxy is to end.
func (p *Proxy) rest(timer *time.Timer, idle time.Duration) bool {
	p.parked.Store(true)
	defer p.parked.Store(false)
	var after <-chan time.Time
	if p.busy() {
		timer.Reset(restAfter(idle))
		after = timer.C
	}
	select {
	case <-p.stop:
		return false
	case <-p.wake:
	case <-after:
	}
	p.now = time.Now()
	return true
}

// moving says whether a part is under way.
func (p *Proxy) moving() bool {
	for _, t := range *p.groups.Load() {
		if t.begun != t.lifted {
			return true
		}
	}
	return false
}

// busy says whether a stream or a copy may need the proxy without anybody saying so.
func (p *Proxy) busy() bool {
	for _, t := range *p.groups.Load() {
		if t.busy() {
			return true
		}
	}
	return false
}

// busy is false while nothing of the group can move but by a call of Queue, Abort or Close.
func (t *Transport) busy() bool {
	if t.failed.Load() != nil {
		return !t.isDrained.Load()
	}
	return t.queued.Load() != t.finished.Load() || t.gate.busy()
}
