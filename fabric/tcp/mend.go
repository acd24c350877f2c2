package tcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

const (
	// mendEvery is how often the lanes of a pair that has several are looked after.
	mendEvery = 250 * time.Millisecond
	// A lane is given up when as many retransmissions in a row, over as long, were not answered.
	givenUpAfter   = time.Second
	givenUpRetries = 3
	maxGeneration  = 1<<16 - 1
	// carrierLag is how late a system may tell that a carrier is back: until then a connection knows better.
	carrierLag = 1500 * time.Millisecond
)

// mender looks after lanes: it finds dead ones, also when no call is in flight, and has them dialled anew.
type mender struct {
	mesh Mesh
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup
	now  chan struct{} // asks for a look before the next tick

	mu      sync.Mutex
	arrived []arrival      // connections dialled anew
	dials   map[*lane]dial // begun
	wanted  []dial         // to begin
	notes   []note         // for the log
	dark    map[string]bool
}

func (t *Transport) newMender(m Mesh) {
	t.mend = &mender{mesh: m, now: make(chan struct{}, 1), dials: map[*lane]dial{}}
	t.mend.life, t.mend.end = context.WithCancel(context.Background())
}

// watch runs until Close.
func (t *Transport) watch() {
	m := t.mend
	tick := time.NewTicker(mendEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.life.Done():
			return
		case <-tick.C:
		case <-m.now:
		}
		if t.group.Aborted() != nil {
			m.end() // nothing is mended any more
			return
		}
		m.look(t.peers)
		if !t.group.Tend(t.mendAll) {
			t.mendDue.Store(true)
			t.group.Wake()
		}
		m.log(t.c.Logger)
		m.redial()
	}
}

// requestMend has the lanes looked after soon.
func (t *Transport) requestMend() {
	select {
	case t.mend.now <- struct{}{}:
	default:
	}
}

// look notes which interfaces have no carrier.
func (m *mender) look(peers []peer) {
	dark := map[string]bool{}
	for i := range peers {
		for _, r := range peers[i].rails {
			if _, known := dark[r.Interface]; !known && r.Interface != "" && !r.SameHost {
				dark[r.Interface] = !sock.Carrier(r.Interface)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dark = dark
}

// mendAll looks after the lanes of all pairs, as the driver or while there is none. What the call in flight moves is left
// to whoever waits for it.
func (t *Transport) mendAll() {
	t.mendDue.Store(false)
	t.mendLanes()
	for r := range t.peers {
		if f := &t.peers[r]; f.wide && f.up > 0 && !t.inCall(f) {
			t.attend(f)
		}
	}
}

func (t *Transport) inCall(f *peer) bool {
	for _, a := range t.call.active {
		if a == f {
			return true
		}
	}
	return false
}

// attend moves what a pair owes each other outside a call. What fails is for the next call to find.
func (t *Transport) attend(f *peer) {
	f.hint()
	_ = t.errand.send(f, true)
	_ = t.errand.receive(f, true)
	f.pause()
}

func (f *peer) hint() {
	for _, l := range f.lanes {
		if l.conn != nil {
			l.conn.Readable, l.conn.Writable = true, true
		}
	}
}

// mendLanes gives up dead lanes, takes in new ones, and says which to dial.
func (t *Transport) mendLanes() {
	m := t.mend
	m.mu.Lock()
	arrived, dark := m.arrived, m.dark
	m.arrived = nil
	m.ripen()
	m.mu.Unlock()
	for _, a := range arrived {
		t.adopt(a)
	}
	var wanted []dial
	for r := range t.peers {
		f := &t.peers[r]
		for _, l := range f.lanes {
			switch {
			case l.conn != nil:
				t.examine(f, l, dark)
			case f.up > 0 && l.generation < maxGeneration:
				wanted = append(wanted, dial{f: f, l: l, name: fabric.Lane{Channel: t.c.Channel, Index: l.index, Rail: l.rail.Index, Generation: l.generation + 1}})
			}
		}
	}
	m.mu.Lock()
	m.wanted = wanted
	m.mu.Unlock()
}

// examine gives a lane up, when its interface has no carrier or its bytes stay unanswered, once another lane of the pair
// has just got an answer: a peer that answers on none may be busy, and giving up lane after lane would end the pair.
func (t *Transport) examine(f *peer, l *lane, dark map[string]bool) {
	h := l.conn.Health()
	l.rail.seen(l.conn, h)
	var why error
	switch {
	case f.up < 2:
		return
	case dark[l.rail.Interface] && (!h.Known || h.Silent >= mendEvery && time.Since(l.raised) >= carrierLag):
		why = fmt.Errorf("%s has no carrier", l.rail.Interface)
	case h.Unanswered >= givenUpRetries && h.Silent >= givenUpAfter:
		why = fmt.Errorf("no answer for %v", h.Silent)
	default:
		// A call may wait for what this lane alone would tell of.
		l.probe = l.probe || h.Known && h.Silent >= givenUpAfter && (f.holds() || t.inCall(f))
		return
	}
	for _, other := range f.lanes {
		if other == l || other.conn == nil || dark[other.rail.Interface] {
			continue
		}
		if o := other.conn.Health(); !o.Known || o.Unanswered == 0 && o.Silent < 2*mendEvery {
			_ = t.bury(f, l, why) // there is another
			return
		}
		other.probe = true // its answer will tell whether only this one is dead
	}
}
