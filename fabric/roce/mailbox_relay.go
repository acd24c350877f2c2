package roce

import (
	"fmt"
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
)

// mailWay is one direction of a stripe through this rank, in a ring of four: what comes from goes on by to. The source writes span, payload and
// flag into a buffer here, which has two slots of each class as the destination has: it writes into one again only when the destination has
// ended the call before the last, and so when all of that has gone on.
type mailWay struct {
	from, to *mailHop
	source   int
	stripe   int
	mem      []byte
	words    []uint64 // what mem begins with
	regions  []Region // of mem, by HCA
	passed   [classes][mailSlots]uint64
	over     [classes]bool // the source has said goodbye
	notes    uint64        // of the source's that were seen
}

// A buffer begins with flags, then spans, [class][slot]; slots follow, alike. A span is where in a slot a payload begins, and its bytes.
const (
	wayFlags     = 0
	waySpans     = line
	waySlots     = pageBytes
	waySpanShift = 32
)

func wayWord(class, slot int) int { return 8 * (class*mailSlots + slot) }

func waySlotAt(class, slot, slotBytes int) int { return waySlots + (class*mailSlots+slot)*slotBytes }

func (w *mailWay) load(at int) uint64     { return atomic.LoadUint64(&w.words[at/8]) }
func (w *mailWay) store(at int, v uint64) { atomic.StoreUint64(&w.words[at/8], v) }

// openWay gives an end that others' stripes come by its buffer.
func (m *Mailbox) openWay(h *mailHop) error {
	n := waySlotAt(classes, 0, m.mc.SlotBytes)
	mem, handle, err := m.d.Alloc(n)
	if err != nil {
		return fmt.Errorf("%d bytes for what the mailbox relays: %w", n, err)
	}
	m.buffers = append(m.buffers, handle)
	w := &mailWay{from: h, source: h.peer, mem: mem}
	if w.words, err = fabric.Words(mem[:waySlots]); err != nil {
		return err
	}
	if w.regions, err = m.register(m.relayHCAs, mem, true); err != nil {
		return err
	}
	h.way, h.near, h.rkey = w, address(mem), w.regions[h.hca.index].RKey
	m.ways = append(m.ways, w)
	return nil
}

// joinWays gives each way its other end, and the stripe that it is of.
func (m *Mailbox) joinWays(all []circuit) {
	for _, w := range m.ways {
		for i := range m.ends {
			if h := &m.ends[i]; h.circuit == w.from.circuit && h != w.from {
				w.to = h
			}
		}
		of := &all[w.from.circuit]
		for i := range all[:w.from.circuit] {
			if all[i].A == of.A && all[i].B == of.B {
				w.stripe++
			}
		}
	}
}

// pass sends on what has come, of each class the earlier call first.
func (w *mailWay) pass(m *Mailbox) (moved bool, err error) {
	for class := range classes {
		for {
			slot, flag := w.next(class)
			if flag == 0 || !w.to.room() {
				break
			}
			if err := w.forward(m, class, slot, flag); err != nil {
				return moved, err
			}
			w.passed[class][slot], moved = flag, true
			if parting(flag) {
				w.over[class] = true
			}
		}
	}
	return moved, w.passNote(m)
}

// next is the earliest flag of a class that has not gone on; 0: there is none.
func (w *mailWay) next(class int) (slot int, flag uint64) {
	for s := range mailSlots {
		f := w.load(wayFlags + wayWord(class, s))
		if f != w.passed[class][s] && (flag == 0 || earlier(f, flag)) {
			slot, flag = s, f
		}
	}
	return slot, flag
}

func (w *mailWay) forward(m *Mailbox, class, slot int, flag uint64) error {
	h, n := w.to, 0
	if !parting(flag) {
		span := w.load(waySpans + wayWord(class, slot))
		from, bytes := int(span>>waySpanShift), int(span&(1<<waySpanShift-1))
		if from+bytes > m.mc.SlotBytes {
			return w.from.cause(fmt.Sprintf("rank %d has %d bytes from %d on to relay; a slot has %d", w.source, bytes, from, m.mc.SlotBytes))
		}
		at := waySlotAt(class, slot, m.mc.SlotBytes) + from
		h.chain[0] = h.letter(m.own.recvAt(class, w.source, slot)+from, Piece{Addr: address(w.mem) + uint64(at), Bytes: uint32(bytes), LKey: w.regions[h.hca.index].LKey})
		if n = 1; bytes == 0 && !h.immediate {
			n = 0
		}
		h.count.sentBytes.Add(uint64(bytes))
	}
	h.count.sentFrames.Add(1)
	return m.postFlag(h, n, mailFlagAt(class, slot, w.source, w.stripe), class, flag)
}

// passNote sends a note on, unless the last one may be on its way yet.
func (w *mailWay) passNote(m *Mailbox) error {
	number := w.from.lastNote()
	if number == w.notes || w.to.completed < w.to.noteEnd || !w.to.room() {
		return nil
	}
	w.notes = number
	n, whole := w.from.note(number)
	if !whole {
		return nil
	}
	return w.to.sendNote(&n)
}
