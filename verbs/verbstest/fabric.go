package verbstest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// Fabric is hosts with HCAs, and what joins them.
type Fabric struct {
	mu      sync.Mutex // of all that is here: no HCA touches memory but under it
	seed    uint64
	hosts   []*Host
	rng     *rand.Rand // which queue pair is next
	active  []*qp      // with something to send
	ready   []*qp      // of a step
	held    bool
	closed  bool
	objects map[uintptr]any
	handles uintptr
	busy    atomic.Bool                     // there is something to do, and it is not held
	cqs     atomic.Pointer[map[uintptr]*cq] // of objects; replaced whole, for those that poll without the lock

	outOfOrder, denyOrder bool
	loss                  float64
	delayMin, delayMax    time.Duration
	cuts                  map[[2]int]bool

	wake, quit, done chan struct{}
	closing          sync.Once
}

// network is what joins ports: a switch or a cable.
type network struct {
	hcas  []*HCA
	cable bool // its two ends are up and down together
	dead  bool
	mtu   int // a larger packet is lost
}

// New wires a fabric and starts it. All that it chooses by chance follows from seed and the order of calls. Close ends it.
func New(seed uint64, t Topology) (*Fabric, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	f := &Fabric{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), objects: map[uintptr]any{}, cuts: map[[2]int]bool{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	for h := range t.Hosts {
		host := &Host{f: f, index: h, refusals: map[string]refusal{}, lacks: map[driver.Symbol]bool{}}
		for i := range t.HCAs {
			host.hcas = append(host.hcas, newHCA(f, host, i))
		}
		f.hosts = append(f.hosts, host)
	}
	for n, ports := range t.Nets {
		net := &network{mtu: 4096, cable: len(ports) == 2 && !t.Switched}
		for _, p := range ports {
			f.hosts[p.Host].hcas[p.HCA].plug(net, n)
		}
	}
	for _, n := range t.Dead {
		for _, p := range t.Nets[n] {
			f.hosts[p.Host].hcas[p.HCA].net.dead = true
		}
	}
	go f.run()
	return f, nil
}

// Close stops all HCAs: what is on its way stays there. A second Close does nothing.
func (f *Fabric) Close() {
	f.closing.Do(func() {
		f.set(func() { f.closed = true })
		close(f.quit)
	})
	<-f.done
}

// Hosts is how many there are.
func (f *Fabric) Hosts() int { return len(f.hosts) }

// Host gives the host of an index from 0; nil where there is none.
func (f *Fabric) Host(i int) *Host {
	if i < 0 || i >= len(f.hosts) {
		return nil
	}
	return f.hosts[i]
}

// Libraries gives each host's library, by index: one for each rank where a rank is a host.
func (f *Fabric) Libraries() []*verbs.Library {
	all := make([]*verbs.Library, len(f.hosts))
	for i, h := range f.hosts {
		all[i] = h.Library()
	}
	return all
}

// Left counts what is open on all hosts.
func (f *Fabric) Left() (sum Left) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		sum.Contexts += h.left.Contexts
		sum.PDs += h.left.PDs
		sum.MRs += h.left.MRs
		sum.Channels += h.left.Channels
		sum.CQs += h.left.CQs
		sum.QPs += h.left.QPs
		sum.Registered += h.left.Registered
	}
	return sum
}

// Hold stops all HCAs until Resume: posts are taken, and nothing moves but by Step.
func (f *Fabric) Hold() { f.set(func() { f.held = true }) }

// Resume ends Hold.
func (f *Fabric) Resume() { f.set(func() { f.held = false }) }

// Step lets one queue pair, chosen by the seed, do the next thing that is due, a packet at most. It says whether there was one.
// Between Hold and Resume the same seed, posts and Steps give the same bytes in the same order.
func (f *Fabric) Step() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	did, _ := f.step(time.Now())
	return did
}

// OutOfOrder has every HCA place the pieces of writes in any order, and later writes of a queue pair before earlier ones, as adaptive
// routing does. A receive that completes still has all before it in place. QP.DataInOrder then says no.
func (f *Fabric) OutOfOrder(on bool) { f.set(func() { f.outOfOrder = on }) }

// DenyOrder has QP.DataInOrder say no, though bytes are placed in order.
func (f *Fabric) DenyOrder(on bool) { f.set(func() { f.denyOrder = on }) }

// Loss loses each packet with this chance, 0 to 1: its queue pair waits its timeout and tries again.
func (f *Fabric) Loss(chance float64) { f.set(func() { f.loss = chance }) }

// Delay has each request that is posted from now on take between least and most.
func (f *Fabric) Delay(least, most time.Duration) {
	f.set(func() { f.delayMin, f.delayMax = max(least, 0), max(least, most, 0) })
}

// Cut loses all between two hosts, in both directions, though all ports stay up; Heal ends it.
func (f *Fabric) Cut(a, b int) { f.set(func() { f.cuts[[2]int{min(a, b), max(a, b)}] = true }) }

// Heal ends Cut.
func (f *Fabric) Heal(a, b int) { f.set(func() { delete(f.cuts, [2]int{min(a, b), max(a, b)}) }) }

func (f *Fabric) set(change func()) {
	f.mu.Lock()
	change()
	f.tally()
	f.mu.Unlock()
	f.nudge()
}

// lock tries for some microseconds first: who parks may run again only once one of the ranks that spin is preempted.
func (f *Fabric) lock() {
	for range 4000 {
		if f.mu.TryLock() {
			return
		}
	}
	f.mu.Lock()
}

func (f *Fabric) tally() { f.busy.Store(!f.held && !f.closed && len(f.active) > 0) }

func (f *Fabric) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// enter makes a handle of an object.
func (f *Fabric) enter(object any) uintptr {
	f.handles += 16
	f.objects[f.handles] = object
	return f.handles
}
