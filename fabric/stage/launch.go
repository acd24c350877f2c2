package stage

import (
	"encoding/binary"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// launch queues a part's stage, then the collect of the part before it, so that one window is on the wire while the next is
// filled; behind the last part's stage goes its own collect as well. begun is false while none of it is on the stream.
func (g *kernelsGate) launch(stream uintptr, d, before *descriptor) (begun bool, err error) {
	g.shown.Add(1)
	if err := g.launchStage(stream, d); err != nil {
		return false, err
	}
	if before != nil {
		if err := g.launchCollect(stream, before, 1); err != nil {
			return true, err
		}
	}
	if d.last {
		return true, g.launchCollect(stream, d, 0)
	}
	return true, nil
}

func (g *kernelsGate) launchStage(stream uintptr, d *descriptor) error {
	s, device := &g.t.slabs, &d.e.call.Device
	g.pieces = d.e.queued.Down(g.pieces[:0], d.part)
	a := g.arguments(place{device: s.device}, s.pitch(), device.In)
	put(a, argDescriptor, d.number())
	if d.part == 0 && device.Lengths != 0 {
		put(a, argLengths, uint64(device.Lengths))
		put(a, argLengthsAt, uint64(s.in))
	}
	return g.run(stream, g.stage, d.lists.down)
}

func (g *kernelsGate) launchCollect(stream uintptr, d *descriptor, back uint32) error {
	s := &g.t.slabs
	if d.e.call.Device.Lengths != 0 {
		g.pieces = d.e.queued.UpWide(g.pieces[:0], d.part)
	} else {
		g.pieces = d.e.queued.Up(g.pieces[:0], d.part)
	}
	a := g.arguments(s.output(0), s.out, d.e.call.Device.Out)
	binary.NativeEndian.PutUint32(a[argBack:], back)
	return g.run(stream, g.collect, d.lists.up)
}

// arguments begins a struct hf_args.
func (g *kernelsGate) arguments(window place, pitch int, memory fabric.DevPtr) []byte {
	a := g.args
	clear(a)
	put(a, argDevice, uint64(g.device))
	put(a, argHost, uint64(g.t.words.device))
	put(a, argSlab, uint64(window.device))
	put(a, argWindow, uint64(pitch))
	put(a, argMemory, uint64(memory))
	put(a, argTimeout, g.waitLimit)
	binary.NativeEndian.PutUint32(a[argWorld:], uint32(g.t.world))
	binary.NativeEndian.PutUint32(a[argClock:], g.clock)
	return a
}

func put(a []byte, at int, v uint64) { binary.NativeEndian.PutUint64(a[at:], v) }

func add(a []byte, at, n int) {
	put(a, at, binary.NativeEndian.Uint64(a[at:])+uint64(n))
}

// run adds the pieces, as one rule where they have one, else as a list, and launches.
func (g *kernelsGate) run(stream, kernel uintptr, room place) error {
	a, p, bytes := g.args, g.pieces, 0
	for i := range p {
		bytes += p[i].Bytes
	}
	binary.NativeEndian.PutUint32(a[argPieces:], uint32(len(p)))
	switch {
	case len(p) == 0:
	case regular(p):
		put(a, argBytesOf, uint64(p[0].Bytes))
		add(a, argMemory, p[0].Buffer)
		add(a, argSlab, p[0].Slab)
		if len(p) > 1 {
			put(a, argStride, uint64(p[1].Buffer-p[0].Buffer))
			put(a, argPitch, uint64(p[1].Slab-p[0].Slab))
		}
	default:
		if room.mem == nil {
			return fabric.Unsupportedf("a part's %d pieces differ in size, and have no list", len(p))
		}
		putList(room.mem, p)
		put(a, argList, uint64(room.device))
	}
	blocks := min(max(1, (bytes+blockBytes-1)/blockBytes), mostBlocks)
	return g.l.Launch(stream, kernel, blocks, threads, a)
}

func putList(mem []byte, p []plan.Piece) {
	for i, piece := range p {
		at := mem[i*pieceBytes:]
		binary.NativeEndian.PutUint64(at, uint64(piece.Buffer))
		binary.NativeEndian.PutUint64(at[8:], uint64(piece.Slab))
		binary.NativeEndian.PutUint64(at[16:], uint64(piece.Bytes))
	}
}
