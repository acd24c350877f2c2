package stage

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// kernelsGate puts two kernels a part on the stream: stage copies the input into a window of the slab and publishes it, collect
// waits for the result and copies it out. The sequence is drawn on the device, so that a replayed graph goes on where the
// stream is; what a sequence is for, its descriptor says. docs/kernels.md is what the kernels promise.
type kernelsGate struct {
	t              *Transport
	l              Launcher
	module         uintptr
	stage, collect uintptr
	device         uintptr // struct hf_device
	table          table
	entries        pool[*entry]          // of eager calls, unused
	eager          pool[*descriptor]     // likewise; more are made as calls have many parts
	room           pool[pair]            // for lists of eager parts
	lists          []*lists              // all there are
	idle           []*lists              // of released plans
	plans          map[uintptr]*planned  // open ones, by stream
	captured       atomic.Bool           // there was a plan
	shown          atomic.Uint64         // grows before a launch, so that the proxy sees what the launch is about
	parted         atomic.Uint64         // grows before done is stored, so that Release sees that the proxy has read its descriptor
	seen           uint64                // the proxy's: the last sequence taken
	held           [heldBack]*descriptor // likewise: eager ones whose collect may not have run
	args           []byte                // struct hf_args: memory of its own, since C is handed it
	pieces         []plan.Piece
	waitLimit      uint64 // nanoseconds, of a kernel
	clock          uint32 // kHz, of a kernel; 0: its own guess
}

// Names of the kernels, and how they are launched: enough lanes to fill a bus, few enough to leave the device to others
// while they wait.
const (
	stageName, collectName = "hf_stage", "hf_collect"
	threads                = 256
	mostBlocks             = 16
	blockBytes             = 16 << 10
	// lastResort is a kernel's own limit, in Timeouts. The proxy and the watch see what does not move, and end it; only where
	// neither runs any more does a kernel come so far, whatever calls of a full ring are before its own.
	lastResort = 4 * ringSlots
	// heldBack is how many sequences later one's collect has run for sure.
	heldBack = 2
)

func newKernelsGate(t *Transport) (gate, error) {
	l, ok := t.d.(Launcher)
	if !ok {
		return nil, fabric.Unsupportedf("the kernels gate needs a driver that launches kernels; %v does not", t.d)
	}
	if len(t.c.Image) == 0 {
		return nil, fabric.Invalidf("Image is empty; the kernels gate needs the kernels' code")
	}
	g := &kernelsGate{t: t, l: l, plans: map[uintptr]*planned{},
		args: make([]byte, argBytes), pieces: make([]plan.Piece, 0, t.world)}
	if limit := t.c.Timeout; limit >= 0 {
		g.waitLimit = uint64(min(limit, math.MaxInt64/lastResort)) * lastResort
	}
	if err := g.open(); err != nil {
		return nil, errors.Join(err, g.free())
	}
	return g, nil
}

func (g *kernelsGate) open() (err error) {
	t := g.t
	var functions []uintptr
	if g.module, functions, err = g.l.Load(t.c.Image, stageName, collectName); err != nil {
		if !errors.Is(err, errors.ErrUnsupported) && !refused(err) { // what is wrong is not the image
			return t.openErr("loading the kernels", err)
		}
		return fabric.Unsupportedf("the image of %d bytes has no kernels for %v: %v; give one for it", len(t.c.Image), t.d, err)
	}
	g.stage, g.collect = functions[0], functions[1]
	g.clock = uint32(max(0, g.l.Clock()))
	if g.device, err = g.l.AllocDevice(deviceWordBytes); err != nil {
		return t.openErr("device memory for the kernels", err)
	}
	room, err := g.newLists()
	if err != nil {
		return err
	}
	for range ringSlots {
		g.entries.put(&entry{})
	}
	for range ringSlots + heldBack {
		g.eager.put(g.table.add())
	}
	for range listsEach {
		g.room.put(room.take())
	}
	return nil
}

func (g *kernelsGate) free() error {
	var errs []error
	if g.device != 0 {
		errs = append(errs, g.l.FreeDevice(g.device))
	}
	if g.module != 0 {
		errs = append(errs, g.l.Unload(g.module))
	}
	for _, l := range g.lists {
		errs = append(errs, g.t.d.FreeHost(l.mem))
	}
	return errors.Join(errs...)
}

// queue puts a call on the stream, or into the graph that it captures.
func (g *kernelsGate) queue(stream uintptr, c *fabric.Call) error {
	t := g.t
	captures, err := t.capturing(stream)
	if err != nil {
		return err
	}
	if captures {
		return g.join(stream, c)
	}
	e, err := take(t, &g.entries)
	if err != nil {
		return err
	}
	e.set(t, c)
	fresh := t.used.Begin(stream)
	var before *descriptor
	for k, parts := 0, e.windows(); k < parts; k++ {
		d, ok := g.eager.get()
		if !ok {
			d = g.table.add()
		}
		if d == nil {
			if d, err = take(t, &g.eager); err != nil {
				return err
			}
		}
		if d.set(e, k, k+1 == parts); len(c.Lengths) > 0 {
			if d.lists, err = take(t, &g.room); err != nil {
				return err
			}
		}
		d.eager = true
		t.queued.Add(1)
		if begun, err := g.launch(stream, d, before); k == 0 && !begun && refused(err) {
			g.takeBack(d)
			return t.refuse(stream, fresh, c, err)
		} else if err != nil {
			return t.queueFailed(stream, c, err)
		}
		t.proxy.called()
		before = d
	}
	t.used.LaidOut()
	return nil
}

// takeBack undoes what queue has taken for a call of which nothing is on its stream.
func (g *kernelsGate) takeBack(d *descriptor) {
	if d.lists.up.mem != nil {
		g.room.put(d.lists)
		d.lists = pair{}
	}
	g.entries.put(d.e)
	g.eager.put(d)
}

// next takes the next sequence, once it is staged.
func (g *kernelsGate) next(j *job) bool {
	t := g.t
	if f := atomic.LoadUint64(t.words.failed()); f != 0 {
		g.gaveUp(f)
		return false
	}
	if !t.words.isReady(g.seen + 1) {
		return false
	}
	g.seen++
	g.shown.Load()
	d := g.table.find(atomic.LoadUint64(t.words.descriptor(g.seen)))
	if d == nil {
		t.reason.Store(reasonReleased)
		t.fail(&fabric.Cause{Kind: fabric.ErrAborted, Peer: t.rank, From: t.rank,
			Text: fmt.Sprintf("rank %d: a graph was launched whose Plan has been released, or of which a call could not be captured, at sequence %d of the device", t.rank, g.seen)})
		return false
	}
	if d.part == 0 {
		d.e.restart()
	}
	window := int(g.seen % 2)
	j.e, j.d, j.seq, j.part, j.last, j.staged = d.e, d, g.seen, d.part, d.last, true
	j.input, j.output, j.vector = t.slabs.input(window), t.slabs.output(window), t.slabs.vector(window)
	return true
}

// gaveUp is for a kernel that came to its own limit: nobody in this process saw to it for so long.
func (g *kernelsGate) gaveUp(word uint64) {
	t := g.t
	t.fail(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: t.rank, From: t.rank, Text: fmt.Sprintf("rank %d: the kernel at sequence %d of %v gave up, reason %d",
		t.rank, word&(1<<reasonShift-1), t.d, word&^failedBit>>reasonShift)})
}

func (g *kernelsGate) learned(*job) {}

// passed gives back what an eager part had, once two more are done: its collect has run by then, and read its list.
func (g *kernelsGate) passed(j *job) {
	if !j.d.eager {
		g.parted.Add(1)
		return
	}
	if j.d.last {
		g.entries.put(j.e)
	}
	old := g.held[j.seq%heldBack]
	g.held[j.seq%heldBack] = j.d
	if old == nil {
		return
	}
	if old.lists.up.mem != nil {
		g.room.put(old.lists)
		old.lists = pair{}
	}
	g.eager.put(old)
}

// busy: a graph is launched without a word to this package, as is one whose plan has been released.
func (g *kernelsGate) busy() bool { return g.captured.Load() }
