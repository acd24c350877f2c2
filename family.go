package hipfabric

import (
	"iter"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
)

// family are this rank's living groups of one Open.
type family struct {
	mu     sync.Mutex
	groups map[*Group]struct{}
	closed uint64 // calls completed in groups that are closed

	proxies  map[string]*proxyLease // by device
	newProxy func(stage.Driver) (*stage.Proxy, error)
}

func (f *family) add(g *Group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.groups[g] = struct{}{}
}

func (f *family) remove(g *Group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.groups, g)
	f.closed += g.host.Stats().Calls
	if c := g.onDevice(); c != nil {
		f.closed += c.calls.Stats().Calls
	}
}

func (f *family) list() []*Group {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*Group, 0, len(f.groups))
	for g := range f.groups {
		all = append(all, g)
	}
	return all
}

// progress is what this rank is doing, for the heartbeat: the call of the group that has waited for the longest, with
// the ranks that the calls of all groups wait for; ranks are those of the group that Open gave.
func (f *family) progress() fabric.Progress {
	p, _ := f.shown()
	return p
}

// voice is one sequence of calls: a group's on host memory, or on device memory.
type voice interface {
	Progress() fabric.Progress
	Records() []fabric.Record
}

func (f *family) shown() (shown fabric.Progress, by voice) {
	shown.Peer = -1
	var waiting, calls uint64
	for _, g := range f.list() {
		for v, p := range g.voices() {
			waiting |= p.Waiting
			calls += p.Calls
			if by == nil || before(p, shown) {
				shown, by = p, v
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	shown.Waiting, shown.Calls = waiting, calls+f.closed
	return shown, by
}

// last is what this rank did last in the group that failed, or, where it is none of its ranks or no call of a group is
// to blame, what it is doing.
func (f *family) last(name string) (fabric.Progress, []fabric.Record) {
	for _, g := range f.list() {
		for v, p := range g.voices() {
			if name != "" && p.Group == name {
				return p, v.Records()
			}
		}
	}
	p, v := f.shown()
	if v == nil {
		return p, nil
	}
	return p, v.Records()
}

// voices are g's sequences of calls and what they are at, with the ranks and the group's name as the session knows them.
func (g *Group) voices() iter.Seq2[voice, fabric.Progress] {
	return func(yield func(voice, fabric.Progress) bool) {
		name := ""
		if g.sub != nil {
			name = g.cfg.Name
		}
		if !yield(g.host, outward(g.host.Progress(), name, g.members())) {
			return
		}
		if c := g.onDevice(); c != nil {
			yield(c.calls, outward(c.calls.Progress(), g.cfg.Name+deviceSuffix, g.members()))
		}
	}
}

// outward gives p the ranks of the group that Open gave, and the name of the one whose call it is; "" is that one's.
func outward(p fabric.Progress, name string, members []int) fabric.Progress {
	p.Group, p.Waiting = name, outer(p.Waiting, members)
	if p.Peer >= 0 {
		p.Peer = members[p.Peer]
	}
	return p
}

// before says whether a is more to be shown than b: a call that waits, then one in flight, the oldest first; else the
// one that ended last.
func before(a, b fabric.Progress) bool {
	rank := func(p fabric.Progress) int {
		switch {
		case p.Running && p.Waiting != 0:
			return 0
		case p.Running:
			return 1
		case p.Op != 0:
			return 2
		default:
			return 3
		}
	}
	if x, y := rank(a), rank(b); x != y {
		return x < y
	}
	return (a.Age > b.Age) == a.Running
}

// outer turns a mask of a group's ranks into one of its members.
func outer(mask uint64, members []int) uint64 {
	var out uint64
	for r, member := range members {
		if mask&(1<<r) != 0 {
			out |= 1 << member
		}
	}
	return out
}

// spin is the policy of one more group: each may spin at the same time as the others of this host's ranks.
func (f *family) spin(configured time.Duration, localRanks int) spinPolicy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return spin(configured, localRanks*(len(f.groups)+1), usableCores())
}
