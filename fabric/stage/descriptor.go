package stage

import (
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// descriptor is what a sequence of the kernels gate is for: a part of a call. Its number goes through the kernels' ring; it
// has a generation, which ends with its plan.
type descriptor struct {
	index      uint32
	generation atomic.Uint32
	e          *entry
	part       int
	last       bool // the call's last part
	eager      bool
	lists      pair // room for irregular pieces; none: use no such
}

func (d *descriptor) set(e *entry, part int, last bool) { d.e, d.part, d.last = e, part, last }

// number is what goes through the ring, 0 never.
func (d *descriptor) number() uint64 { return uint64(d.generation.Load())<<32 | uint64(d.index) }

// table finds descriptors by number. One goroutine adds; the proxy finds.
type table struct {
	chunks [4096]atomic.Pointer[[tableChunk]descriptor]
	size   uint32
	unused []*descriptor // of released plans
}

const tableChunk = 256

// add gives an unused descriptor, nil when there is none left.
func (t *table) add() *descriptor {
	if n := len(t.unused); n > 0 {
		d := t.unused[n-1]
		t.unused = t.unused[:n-1]
		return d
	}
	chunk := t.size / tableChunk
	if int(chunk) == len(t.chunks) {
		return nil
	}
	c := t.chunks[chunk].Load()
	if c == nil {
		c = new([tableChunk]descriptor)
		t.chunks[chunk].Store(c)
	}
	d := &c[t.size%tableChunk]
	d.index = t.size
	d.generation.Store(1)
	t.size++
	return d
}

// left is how many there are for add.
func (t *table) left() int { return len(t.unused) + len(t.chunks)*tableChunk - int(t.size) }

// drop ends the descriptor's generation.
func (t *table) drop(d *descriptor) {
	d.generation.Add(1)
	t.unused = append(t.unused, d)
}

// find gives nil for a number that none has, or has no more.
func (t *table) find(number uint64) *descriptor {
	index := uint32(number)
	if int(index/tableChunk) >= len(t.chunks) {
		return nil
	}
	c := t.chunks[index/tableChunk].Load()
	if c == nil {
		return nil
	}
	if d := &c[index%tableChunk]; d.number() == number {
		return d
	}
	return nil
}

// lists is pinned memory for lists of pieces, which kernels read where a call's pieces differ in size.
type lists struct {
	place
	world, used int
}

// pair is room for a part's two lists.
type pair struct{ down, up place }

const listsEach = 4 * ringSlots

func (g *kernelsGate) newLists() (*lists, error) {
	mem, device, err := g.t.d.AllocHost(listsEach * 2 * g.t.world * pieceBytes)
	if err != nil {
		return nil, g.t.openErr("pinned memory for lists of pieces", err)
	}
	l := &lists{place: place{mem, device}, world: g.t.world}
	g.lists = append(g.lists, l)
	return l, nil
}

func (l *lists) left() int { return listsEach - l.used }

// take gives the next pair; there must be one left.
func (l *lists) take() pair {
	n := l.world * pieceBytes
	at := func(i int) place { return place{l.mem[i*n:][:n:n], l.device + uintptr(i*n)} }
	l.used++
	return pair{at(2*l.used - 2), at(2*l.used - 1)}
}

// windows is how many parts the kernels move, which they must know when the call is queued.
func (e *entry) windows() int {
	if e.call.Device.Lengths != 0 {
		return e.queued.Windows()
	}
	return e.queued.Parts()
}

// restart makes a captured call fresh for a replay.
func (e *entry) restart() {
	e.vector, e.agreed = e.call.Device.Lengths == 0, e.call.Op != fabric.AllToAllV
}

// regular says whether pieces are of one size and at one distance, as a kernel takes them without a list.
func regular(p []plan.Piece) bool {
	for i := range p {
		if p[i].Bytes != p[0].Bytes || i > 1 && (p[i].Buffer-p[i-1].Buffer != p[1].Buffer-p[0].Buffer || p[i].Slab-p[i-1].Slab != p[1].Slab-p[0].Slab) {
			return false
		}
	}
	return true
}
