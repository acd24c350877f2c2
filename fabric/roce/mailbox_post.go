package roce

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
)

// What an immediate says where a device does not promise order: the class, the tag, the low bits of the epoch.
const (
	immClassShift = 31
	immTagShift   = immClassShift - tagBits
	immEpochMask  = 1<<immTagShift - 1
)

// serve posts the calls of a target that were rung since, in order. A proxy may sleep across two, and no more.
func (p *mailProxy) serve(target int) (moved bool, err error) {
	m, l := p.m, &p.m.own
	rung := l.bell(target, bellEpoch)
	if rung == p.posted[target] {
		return false, nil
	}
	if rung-p.posted[target] > mailSlots {
		return false, m.deviceCause(fmt.Sprintf("rank %d: the doorbell of target %d went from %d to %d; it can skip one", m.rank, target, p.posted[target], rung), nil)
	}
	for epoch := p.posted[target] + 1; epoch <= rung && p.roomFor(target); epoch++ {
		slot := int(epoch % mailSlots)
		bytes, flag := l.bell(target, bellSizes+8*slot), l.bell(target, bellFlags+8*slot)
		if bytes > uint64(l.slotBytes) || flag&flagEpoch != epoch&flagEpoch {
			return moved, m.deviceCause(fmt.Sprintf("rank %d: the doorbell of target %d says of call %d that it has %d bytes, of %d, and flag %#x", m.rank, target, epoch, bytes, l.slotBytes, flag), nil)
		}
		err := p.post(target, slot, int(bytes), flag)
		if target != m.rank || epoch > 1 { // the probe is no call
			m.log.begin(m, target, int(bytes), epoch, flag)
		}
		if err != nil {
			return moved, err
		}
		p.posted[target], moved = epoch, true
	}
	return moved, nil
}

// peersOf bounds those of a target: all, or the one. Of this rank itself there are no hops.
func (m *Mailbox) peersOf(target int) (from, to int) {
	if target == m.rank {
		return 0, m.world
	}
	return target, target + 1
}

func (p *mailProxy) roomFor(target int) bool {
	from, to := p.m.peersOf(target)
	for peer := from; peer < to; peer++ {
		for i := range p.m.hops[peer] {
			if !p.m.hops[peer][i].room() {
				return false
			}
		}
	}
	return true
}

func (p *mailProxy) post(target, slot, bytes int, flag uint64) error {
	first, end := p.m.peersOf(target)
	for peer := first; peer < end; peer++ {
		hops := p.m.hops[peer]
		for i := range hops {
			from, to := stripeOf(bytes, len(hops), i)
			if err := p.m.postPart(hops[i], target, slot, from, to, flag); err != nil {
				return err
			}
		}
	}
	return nil
}

// postPart posts a stripe's share of a send slot, and its flag behind that; of an empty share too.
func (m *Mailbox) postPart(h *mailHop, target, slot, from, to int, flag uint64) error {
	class, n, at := m.own.classOf(target), 0, m.own.recvAt(m.own.classOf(target), m.rank, slot)
	if h.relayed {
		at = waySlotAt(class, slot, m.mc.SlotBytes)
		h.chain[0] = h.word(waySpans+wayWord(class, slot), uint64(from)<<waySpanShift|uint64(to-from), 0)
		n = 1
	}
	h.count.sentBytes.Add(uint64(to - from))
	h.count.sentFrames.Add(1)
	if to > from || h.immediate {
		h.chain[n] = h.letter(at+from, Piece{Addr: address(m.own.mem) + uint64(m.own.sendAt(target, slot)+from), Bytes: uint32(to - from), LKey: h.lkey})
		n++
	}
	return m.postFlag(h, n, m.flagAt(h, class, slot), class, flag)
}

// flagAt is where this rank's flag of a stripe is at the other end.
func (m *Mailbox) flagAt(h *mailHop, class, slot int) int {
	if h.relayed {
		return wayFlags + wayWord(class, slot)
	}
	return mailFlagAt(class, slot, m.rank, h.stripe)
}

// postFlag posts n requests of the chain, and what tells of them: a flag at a place there, or the last one's immediate.
func (m *Mailbox) postFlag(h *mailHop, n, at, class int, flag uint64) error {
	if !h.immediate {
		h.chain[n] = h.word(at, flag, 1)
		return h.post(n+1, false)
	}
	if parting(flag) {
		h.chain[n] = h.letter(at, Piece{})
		n++
	}
	h.chain[n-1].Immediate, h.chain[n-1].Imm = true, immediateOf(class, flag)
	return h.post(n, false)
}

func immediateOf(class int, flag uint64) uint32 {
	return uint32(class)<<immClassShift | uint32(flag>>flagShift)<<immTagShift | uint32(flag)&immEpochMask
}

// publish stores the flag of what a completion says is in place.
func (m *Mailbox) publish(h *mailHop, imm uint32) error {
	h.owed++
	class, tag := int(imm>>immClassShift), uint64(imm>>immTagShift&farewellTag)
	epoch := h.arrived[class] + 1
	switch {
	case tag == noteTag:
		h.noted++
		return h.restock()
	case imm&immEpochMask != uint32(epoch)&immEpochMask:
		return h.cause(fmt.Sprintf("rank %d claims a call whose number ends in %#x where %d is next", h.peer, imm&immEpochMask, epoch))
	case tag != farewellTag:
		h.arrived[class] = epoch
	}
	flag := flagOf(tag, epoch)
	if slot := int(epoch % mailSlots); h.way != nil {
		h.way.store(wayFlags+wayWord(class, slot), flag)
	} else {
		m.own.store(mailFlagAt(class, slot, h.peer, h.stripe), flag)
	}
	return h.restock()
}

// parted says whether a peer has closed its part.
func (m *Mailbox) parted(peer int) bool {
	for class := range classes {
		for slot := range mailSlots {
			if parting(m.own.load(mailFlagAt(class, slot, peer, 0))) {
				return true
			}
		}
	}
	return false
}

// bye tells the peers of a target that no further call of it comes, where the next flag would be: once its last one has ended here, the peers
// have begun that one, and look there no more.
func (p *mailProxy) bye(target int) error {
	m := p.m
	last := p.posted[target]
	if m.own.bell(target, bellEpoch) != last || m.own.bell(target, bellEnded) != last {
		return nil
	}
	slot, class, flag := int((last+1)%mailSlots), m.own.classOf(target), flagOf(farewellTag, last+1)
	first, end := m.peersOf(target)
	for peer := first; peer < end; peer++ {
		for i, h := range m.hops[peer] {
			if !h.room() || i > 0 && !h.relayed { // of what is relayed each rank between is to hear
				continue
			}
			if err := m.postFlag(h, 0, m.flagAt(h, class, slot), class, flag); err != nil {
				return err
			}
		}
	}
	return nil
}

// lostHCA is the cause when a device of this rank fails: it names the first peer that was reached through it.
func (m *Mailbox) lostHCA(h *hca, text string) error {
	for i := range m.ends {
		if m.ends[i].hca == h {
			return m.ends[i].cause(text)
		}
	}
	return flow.PeerCause(-1, 0, text, nil)
}

// deviceCause is an ErrDevice of this rank's.
func (m *Mailbox) deviceCause(text string, err error) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrDevice, Peer: m.rank, From: m.rank, Text: text, Err: err}
}
