package roce

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// mailLog keeps the last calls that streams have reached, by what their doorbells say: of graphs too. The proxy writes, and who
// sees that a kernel has failed.
type mailLog struct {
	mu     sync.Mutex
	epoch  time.Time
	slots  [fabric.RecordSlots]mailRecord
	count  uint64
	done   uint64
	bytes  uint64
	spent  uint64 // nanoseconds
	failed uint64
	group  uint64 // calls of the group
	over   bool   // a kernel has failed
}

type mailRecord struct {
	target, bytes int
	epoch, flag   uint64
	seq           uint64
	peer          int
	begun, ended  int64
	state         fabric.State
}

func (g *mailLog) now() int64 { return int64(time.Since(g.epoch)) }

func (g *mailLog) begin(m *Mailbox, target, bytes int, epoch, flag uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over || !g.has(target, epoch) {
		g.open(m, target, bytes, epoch, flag)
	}
}

// gaveUp has a record of a call whose kernel has failed, which the proxy may not have seen yet.
func (g *mailLog) gaveUp(m *Mailbox, target, bytes int, epoch, flag uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if !g.has(target, epoch) {
		g.open(m, target, bytes, epoch, flag)
	}
}

// has looks at the newest record of a target.
func (g *mailLog) has(target int, epoch uint64) bool {
	for i := range min(g.count, fabric.RecordSlots) {
		if r := &g.slots[(g.count-1-i)%fabric.RecordSlots]; r.target == target {
			return r.epoch >= epoch
		}
	}
	return false
}

func (g *mailLog) open(m *Mailbox, target, bytes int, epoch, flag uint64) {
	r := &g.slots[g.count%fabric.RecordSlots]
	*r = mailRecord{target: target, bytes: bytes, epoch: epoch, flag: flag, seq: m.seqOf(target == m.rank, epoch), peer: -1, begun: g.now(), state: fabric.Running}
	if target != m.rank {
		r.peer = target
	} else {
		g.group = r.seq
	}
	g.count++
}

// end closes the records of a target up to an epoch. Those before one that is closed are closed.
func (g *mailLog) end(target int, epoch uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range min(g.count, fabric.RecordSlots) {
		r := &g.slots[(g.count-1-i)%fabric.RecordSlots]
		switch {
		case r.target != target || r.epoch > epoch:
			continue
		case r.state != fabric.Running:
			return
		}
		r.ended, r.state = g.now(), fabric.Done
		g.done++
		g.bytes += uint64(r.bytes)
		g.spent += uint64(r.ended - r.begun)
	}
}

// fail closes all that run.
func (g *mailLog) fail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.slots {
		if r := &g.slots[i]; r.state == fabric.Running {
			r.ended, r.state = g.now(), fabric.Failed
			g.failed++
		}
	}
}

func (g *mailLog) record(r *mailRecord) fabric.Record {
	c, _, _ := callOfTag(r.flag >> flagShift)
	out := fabric.Record{Seq: r.seq, Op: c.op, Bytes: r.bytes, Peer: r.peer, DType: c.dtype, Reduce: c.reduce, State: r.state,
		Begun: g.epoch.Add(time.Duration(r.begun))}
	if r.ended != 0 {
		out.Took = time.Duration(r.ended - r.begun)
	}
	return out
}

// Records are of the last calls of both paths, by when they began. A call of the mailbox is numbered among those of the group, or of its
// pair, that went by the mailbox.
func (m *Mailbox) Records() []fabric.Record {
	all := m.rest.Records()
	g := &m.log
	g.mu.Lock()
	for i := g.count - min(g.count, fabric.RecordSlots); i < g.count; i++ {
		all = append(all, g.record(&g.slots[i%fabric.RecordSlots]))
	}
	g.mu.Unlock()
	slices.SortStableFunc(all, func(a, b fabric.Record) int { return a.Begun.Compare(b.Begun) })
	return all[max(0, len(all)-fabric.RecordSlots):]
}

// Progress is what either path is doing, or did last.
func (m *Mailbox) Progress() fabric.Progress {
	other := m.rest.Progress()
	g := &m.log
	g.mu.Lock()
	defer g.mu.Unlock()
	calls, group := other.Calls+g.done, other.GroupSeq+g.group
	if g.count > 0 {
		r := g.record(&g.slots[(g.count-1)%fabric.RecordSlots])
		p := fabric.Progress{Running: r.State == fabric.Running, Op: r.Op, Class: r.Op.Class(), Seq: r.Seq, Bytes: r.Bytes, Peer: r.Peer,
			Age: time.Since(r.Begun) - r.Took}
		if p.Running || !other.Running && (other.Op == 0 || p.Age < other.Age) {
			other = p
		}
	}
	other.Calls, other.GroupSeq = calls, group
	return other
}

// Waiting is the set of ranks that a call waits for: of the mailbox's those whose flags have not come.
func (m *Mailbox) Waiting() uint64 {
	set := m.rest.Waiting()
	m.inside.Add(1)
	defer m.leave()
	if m.failed.Load() != nil {
		return set
	}
	for target := range m.world {
		epoch := m.own.bell(target, bellEpoch)
		if m.own.bell(target, bellEnded) == epoch {
			continue
		}
		slot := int(epoch % mailSlots)
		flag := m.own.bell(target, bellFlags+8*slot)
		for peer, end := m.peersOf(target); peer < end; peer++ {
			for i := range m.hops[peer] {
				if m.own.load(mailFlagAt(m.own.classOf(target), slot, peer, i)) != flag {
					set |= 1 << peer
				}
			}
		}
	}
	return set
}

// Stats are of both paths.
func (m *Mailbox) Stats() fabric.Stats {
	s := m.rest.Stats()
	g := &m.log
	g.mu.Lock()
	s.Calls, s.Failed, s.Bytes, s.CallNs = s.Calls+g.done, s.Failed+g.failed, s.Bytes+g.bytes, s.CallNs+g.spent
	g.mu.Unlock()
	s.Transport.Kind = m.Kind()
	s.Transport.Polls += m.proxy.polls.Load()
	s.Transport.Parks += m.proxy.parks.Load()
	for peer := range m.hops {
		if peer == m.rank {
			continue
		}
		i, there := slices.BinarySearchFunc(s.Transport.Peers, peer, func(p fabric.PeerStats, peer int) int { return cmp.Compare(p.Peer, peer) })
		if !there {
			s.Transport.Peers = slices.Insert(s.Transport.Peers, i, fabric.PeerStats{Peer: peer})
		}
		ps := &s.Transport.Peers[i]
		for k := range m.hops[peer] {
			h := m.hops[peer][k]
			r := fabric.RailStats{Name: h.name, Lanes: 1, SentBytes: h.count.sentBytes.Load(), SentFrames: h.count.sentFrames.Load()}
			ps.Rails = append(ps.Rails, r)
			ps.SentBytes += r.SentBytes
			ps.SentFrames += r.SentFrames
		}
	}
	return s
}
