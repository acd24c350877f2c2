//go:build linux

package adapters

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Group is the regions of a group's ranks, and what moves between them.
type Group struct {
	SlotBytes, Stripes int
	Regions            [][]byte // by rank, whole, not of Go's memory
	// Sleeps, where given, keeps a rank's proxy from looking at a target's doorbell further; posted is the last epoch that it posted.
	Sleeps func(rank, target int, posted uint64) bool
	// Broken tells of what a proxy has seen that cannot be.
	Broken func(string)

	skipped atomic.Int64
}

// Skipped is how often a proxy has found two calls at once.
func (g *Group) Skipped() int { return int(g.skipped.Load()) }

// Start runs the ranks' proxies, each in an order of its own that the seed decides, until stop, which waits for their end.
func (g *Group) Start(seed uint64) (stop func()) {
	var ended atomic.Bool
	var running sync.WaitGroup
	for r := range g.Regions {
		running.Go(func() {
			p := proxy{g: g, rank: r, world: len(g.Regions), random: rand.New(rand.NewPCG(seed, uint64(r))), queued: map[lane][]part{}}
			p.posted = make([]uint64, p.world)
			for !ended.Load() {
				p.turn()
				runtime.Gosched()
			}
		})
	}
	return func() {
		ended.Store(true)
		running.Wait()
	}
}

// A lane is a queue pair: what is queued there arrives in order.
type lane struct{ peer, stripe int }

// A part is the share of a payload that a lane carries. It is read when it is sent, as an HCA does.
type part struct {
	target, slot, from, to int
	flag                   uint64
}

type proxy struct {
	g           *Group
	rank, world int
	random      *rand.Rand
	posted      []uint64
	queued      map[lane][]part
}

// turn looks at the doorbells, or not, and lets some lanes send.
func (p *proxy) turn() {
	for target := range p.world {
		if p.random.IntN(4) > 0 && (p.g.Sleeps == nil || !p.g.Sleeps(p.rank, target, p.posted[target])) {
			p.look(target)
		}
	}
	for range 1 + p.random.IntN(2*p.world) {
		l := lane{p.random.IntN(p.world), p.random.IntN(p.g.Stripes)}
		if q := p.queued[l]; len(q) > 0 {
			p.send(l, q[0])
			p.queued[l] = q[1:]
		}
	}
}

// look queues each call that has been rung since, in order.
func (p *proxy) look(target int) {
	mem, bell := p.g.Regions[p.rank], target*DoorbellBytes
	rung := Load(mem, bell+DoorbellEpoch)
	switch rung - p.posted[target] {
	case 0, 1:
	case 2:
		p.g.skipped.Add(1)
	default:
		p.g.Broken(fmt.Sprintf("rank %d: the doorbell of target %d went from %d to %d", p.rank, target, p.posted[target], rung))
		return
	}
	for epoch := p.posted[target] + 1; epoch <= rung; epoch++ {
		slot := int(epoch % Slots)
		bytes, flag := int(Load(mem, bell+DoorbellSize+8*slot)), Load(mem, bell+DoorbellFlag+8*slot)
		for peer := range p.world {
			if peer == p.rank || (target != p.rank && target != peer) {
				continue
			}
			for stripe := range p.g.Stripes {
				from, to := Stripe(bytes, p.g.Stripes, stripe)
				l := lane{peer, stripe}
				p.queued[l] = append(p.queued[l], part{target, slot, from, to, flag})
			}
		}
	}
	p.posted[target] = rung
}

// send places a part's bytes, some behind others, and then its flag.
func (p *proxy) send(l lane, w part) {
	class := Class(p.rank, w.target)
	send := p.g.Regions[p.rank][SendAt(p.world, p.g.SlotBytes, w.target, w.slot):]
	recv := p.g.Regions[l.peer][RecvAt(p.world, p.g.SlotBytes, class, p.rank, w.slot):]
	middle := w.from
	if w.to > w.from {
		middle += p.random.IntN(w.to - w.from)
	}
	copy(recv[middle:w.to], send[middle:w.to])
	runtime.Gosched()
	copy(recv[w.from:middle], send[w.from:middle])
	Store(p.g.Regions[l.peer], FlagAt(class, w.slot, p.rank, l.stripe), w.flag)
}
