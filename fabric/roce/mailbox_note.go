package roce

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// A kernel sees that a peer is in another call of its target. That a peer is in a call of another target, or of the other path, no flag
// tells: so the proxy of a rank that waits for long writes a note to those that it waits for, of the call it is in and of how many others it
// made before. Who has made more of those, and not this one, has left the order that all ranks share.

const (
	noteAfter = 20 * time.Millisecond // of a wait
	noteEvery = 50 * time.Millisecond

	noteBegin = 0 // its number
	noteClass = 1 // of the call
	noteFlag  = 2 // awaited
	noteBytes = 3
	noteGroup = 4 // calls of the group that the mailbox has begun
	notePair  = 5 // of the pair
	noteRest  = 6 // of the group that the other path has begun
	noteSwaps = 7 // of the pair that it has begun, at most; noteMany: unknown
	noteEnd   = 8 // its number again
	noteWords = 9
	noteMany  = math.MaxUint64
)

// note is what one says; its place in a share is that of the first offer.
type note [noteWords]uint64

// tell writes notes where a kernel has waited for long.
func (p *mailProxy) tell(now time.Time, still time.Duration) error {
	if still < noteAfter || now.Sub(p.said) < noteEvery {
		return nil
	}
	p.said = now
	m := p.m
	for target, epoch := range p.posted {
		if p.ended[target] == epoch {
			continue
		}
		slot := int(epoch % mailSlots)
		flag := m.own.bell(target, bellFlags+8*slot)
		for peer, end := m.peersOf(target); peer < end; peer++ {
			if len(m.hops[peer]) == 0 || m.arrivedFrom(peer, target, slot, flag) {
				continue
			}
			if err := m.write(m.hops[peer][0], target, slot, flag); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrivedFrom says whether all flags of a call have come from a peer.
func (m *Mailbox) arrivedFrom(peer, target, slot int, flag uint64) bool {
	for i := range m.hops[peer] {
		if m.own.load(mailFlagAt(m.own.classOf(target), slot, peer, i)) != flag {
			return false
		}
	}
	return true
}

// write sends a note, unless the last one may be on its way yet.
func (m *Mailbox) write(h *mailHop, target, slot int, flag uint64) error {
	if h.completed < h.noteEnd || !h.room() {
		return nil
	}
	return h.sendNote(&note{noteClass: uint64(m.own.classOf(target)), noteFlag: flag, noteBytes: m.own.bell(target, bellSizes+8*slot),
		noteGroup: m.own.bell(m.rank, bellEpoch), notePair: m.own.bell(h.peer, bellEpoch), noteRest: m.rest.Progress().GroupSeq,
		noteSwaps: m.swapsAtMost(h.peer)})
}

func (h *mailHop) sendNote(n *note) error {
	h.notes++
	n[noteBegin], n[noteEnd] = h.notes, h.notes
	out := h.share.mem[offerOutAt(0):][:8*noteWords]
	for i, v := range n {
		binary.NativeEndian.PutUint64(out[8*i:], v)
	}
	h.chain[0] = h.hop.write(offerAt(0), [2]Piece{h.share.piece(offerOutAt(0), 8*noteWords)})
	chain := 1
	if h.immediate {
		h.chain[0].Immediate, h.chain[0].Imm = true, noteTag<<immTagShift
	} else {
		h.chain[1], chain = h.hop.word(flagAt(0), h.notes), 2
	}
	if err := h.post(chain, true); err != nil {
		return err
	}
	h.noteEnd = h.posted
	return nil
}

// lastNote is the number of the last one that has come.
func (h *mailHop) lastNote() uint64 {
	if h.immediate {
		return h.noted
	}
	return h.share.flag(0)
}

// note reads the one of that number; false where another one is coming.
func (h *mailHop) note(number uint64) (n note, whole bool) {
	for i := range n {
		n[i] = atomic.LoadUint64(&h.share.words[offerAt(0)/8+i])
	}
	return n, n[noteBegin] == number && n[noteEnd] == number
}

// heed reads the notes that have come, and gives the cause that one makes.
func (p *mailProxy) heed() error {
	for peer, hops := range p.m.hops {
		if len(hops) == 0 {
			continue
		}
		number := hops[0].lastNote()
		if number == hops[0].heeded {
			continue
		}
		hops[0].heeded = number
		n, whole := hops[0].note(number)
		if !whole {
			continue
		}
		if err := p.m.contradicts(peer, &n); err != nil {
			return err
		}
	}
	return nil
}

// contradicts says that this rank has begun a call which the peer, that has told of its own, makes after that; or nil. This rank's own call is looked
// at last, so that the others were begun before it.
func (m *Mailbox) contradicts(peer int, n *note) error {
	other := m.rest.Progress()
	group, pair := m.own.bell(m.rank, bellEpoch), m.own.bell(peer, bellEpoch)
	swaps := uint64(0)
	if n[noteSwaps] != noteMany {
		swaps = m.swapsAtLeast(peer)
	}
	mine := m.rank
	if n[noteClass] == classPair {
		mine = peer
	}
	begun := m.own.bell(mine, bellEpoch)
	theirs := epochOf(n[noteFlag], begun)
	if begun >= theirs {
		return nil
	}
	call := ""
	switch {
	case other.GroupSeq > n[noteRest], n[noteSwaps] != noteMany && swaps > n[noteSwaps]:
		call = fmt.Sprintf("%v seq %d, %d bytes", other.Op, other.Seq, other.Bytes)
	case n[noteClass] == classPair && group > n[noteGroup]:
		call = m.called(m.rank, group, m.own.bell(m.rank, bellFlags+8*int(group%mailSlots)))
	case n[noteClass] == classGroup && pair > n[notePair]:
		call = m.called(peer, pair, m.own.bell(peer, bellFlags+8*int(pair%mailSlots)))
	default:
		return nil
	}
	kind, _, _ := callOfTag(n[noteFlag] >> flagShift)
	seq := m.seqOf(mine == m.rank, theirs)
	return &fabric.Cause{Kind: fabric.ErrDesync, Peer: peer, From: m.rank,
		Text: fmt.Sprintf("rank %d is in %s; rank %d is in %v seq %d, %d bytes", m.rank, call, peer, kind, seq, n[noteBytes])}
}

// swapsAtMost counts calls of a pair that the other path has begun here, where it remembers all.
func (m *Mailbox) swapsAtMost(peer int) uint64 {
	all := m.rest.Records()
	if len(all) >= fabric.RecordSlots {
		return noteMany
	}
	return countSwaps(all, func(r *fabric.Record) bool { return r.Peer == peer || r.Op == fabric.SendRecv }) // whose From it does not tell
}

// swapsAtLeast likewise, of those that it remembers.
func (m *Mailbox) swapsAtLeast(peer int) uint64 {
	return countSwaps(m.rest.Records(), func(r *fabric.Record) bool { return r.Peer == peer })
}

func countSwaps(all []fabric.Record, with func(*fabric.Record) bool) (n uint64) {
	for i := range all {
		if r := &all[i]; r.Op.Class() == fabric.Pair && r.Part == 0 && with(r) {
			n++
		}
	}
	return n
}
