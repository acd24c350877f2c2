package stage

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// phase is how far a job has come.
type phase uint8

const (
	fetching phase = iota // its input comes down, or waits for that
	fetched
	wiring
	lifting // its result goes up, or waits for that
	landed
)

// job is a part of a call under way.
type job struct {
	e      *entry
	d      *descriptor // the kernels gate's
	seq    uint64      // of the done word
	part   int
	last   bool // of the call's parts on this rank: done is stored after it
	staged bool // a kernel copies: input is in the slab already, output is its to take

	phase         phase
	copying       bool      // a copy of it is on a copy stream
	since         time.Time // when it came to need one
	round         int       // the part that is on the wire: job.part, or a later one of other ranks
	asking        bool      // the wire carries the all-to-all-v's agreement
	input, output place
	vector        place
	inPlace       []byte // the engine's own memory, instead of input and output
	outPlace      []byte
}

// step makes what progress can be made now on every part under way: the oldest first, so that each makes room for the next.
func (t *Transport) step() bool {
	if t.failed.Load() != nil {
		return t.end()
	}
	moved := t.lift()
	moved = t.move() || moved
	return t.fetch() || moved
}

func (t *Transport) job(n uint64) *job { return &t.jobs[n%sets] }

// lift brings the oldest result up, and ends its job.
func (t *Transport) lift() bool {
	if t.lifted == t.wired {
		return false
	}
	j := t.job(t.lifted)
	if j.phase == lifting && !t.copied(&t.proxy.up, j, (*Transport).startLift) {
		return false
	}
	t.gate.passed(j)
	if j.last || j.staged {
		t.words.finish(j.seq)
		if !j.staged || j.d.eager {
			t.finished.Add(1)
		}
	}
	t.lifted++
	return true
}

func (t *Transport) startLift(j *job) (none bool, err error) {
	t.pieces = j.e.shape.Up(t.pieces[:0], j.part)
	if j.outPlace != nil || len(t.pieces) == 0 {
		return true, nil
	}
	if j.e.out != nil {
		for _, p := range t.pieces {
			copy(j.e.out[p.Buffer:][:p.Bytes], j.output.mem[p.Slab:])
		}
		return true, nil
	}
	out := uintptr(j.e.call.Device.Out)
	return false, t.proxy.up.start(t.proxy, j, t.pieces, func(p plan.Piece) (dst, src uintptr) {
		return out + uintptr(p.Buffer), j.output.device + uintptr(p.Slab)
	})
}

// copied starts a job's copies once the copy stream is free, and says whether they have landed.
func (t *Transport) copied(c *copier, j *job, start func(*Transport, *job) (none bool, err error)) bool {
	if !j.copying {
		if c.job != nil {
			t.late(c, j)
			return false
		}
		none, err := start(t, j)
		if none {
			return true
		}
		j.copying = true
		if err != nil {
			t.copyFailed(j, "queueing a copy", err)
			return false
		}
	}
	done, err := c.landed(t.proxy)
	if err != nil {
		t.copyFailed(j, "asking after a copy, which may still land,", err)
		return false
	}
	if !done {
		t.late(c, j)
		return false
	}
	j.copying = false
	return true
}

// late ends the group when a copy has taken as long as a peer may; a little less, so that the rank whose device hangs is
// the one that says so.
func (t *Transport) late(c *copier, j *job) {
	if limit := t.c.Timeout - t.c.Timeout/8; limit >= 0 && t.proxy.now.Sub(j.since) >= limit {
		text := fmt.Sprintf("rank %d: a copy of %v part %d on %v has not landed within %v, and still may", t.rank, j.e.call.Op, j.part, t.d, t.c.Timeout)
		if !c.private {
			text += "; its stream shares a hardware queue with others, where the library has no streams with one of their own: a stream that " +
				"waits on it holds up all, so use no more streams than queues (GPU_MAX_HW_QUEUES)"
		}
		t.fail(t.deviceCause(text, nil))
	}
}

func (t *Transport) copyFailed(j *job, what string, err error) {
	t.fail(t.deviceCause(fmt.Sprintf("rank %d: %s of %v part %d on %v: %v", t.rank, what, j.e.call.Op, j.part, t.d, err), err))
}

func (t *Transport) deviceCause(text string, err error) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrDevice, Peer: t.rank, From: t.rank, Text: text, Err: err}
}

// move drives the part that is on the wire.
func (t *Transport) move() bool {
	if t.wired == t.begun {
		return false
	}
	j := t.job(t.wired)
	switch j.phase {
	case fetched:
		j.phase, j.round = wiring, j.part
		t.send(j)
	case wiring:
		done, err := t.flight.Poll()
		if err != nil {
			t.fail(fabric.CauseOf(err))
			return true
		}
		if !done {
			return false
		}
		t.sent(j)
	default:
		return false
	}
	return true
}

// send puts the next thing of a job on the wire: the agreement on its parts, or a part.
func (t *Transport) send(j *job) {
	e := j.e
	var c fabric.Call
	switch {
	case !e.agreed:
		c = t.ask(j)
	case j.round >= e.rounds:
		t.sent(j) // a window that no rank has bytes for
		return
	default:
		c = e.part(t, j, j.round)
	}
	flight, err := t.inner.Begin(c)
	if err != nil {
		t.fail(fabric.CauseOf(err))
		return
	}
	t.flight = flight
}

// sent goes on from what the wire has carried.
func (t *Transport) sent(j *job) {
	switch e := j.e; {
	case j.asking:
		j.asking = false
		largest := t.answer()
		if largest > maxBlock {
			t.fail(&fabric.Cause{Kind: fabric.ErrDesync, Peer: -1, From: t.rank, Text: fmt.Sprintf("rank %d: an all-to-all-v with a block of %d bytes", t.rank, largest)})
			return
		}
		e.agree(int(largest))
		t.send(j)
	case j.last && j.round+1 < e.rounds && e.call.Op == fabric.AllToAllV:
		j.round++ // other ranks have more parts
		t.send(j)
	default:
		j.phase, j.since = lifting, t.proxy.now
		if j.staged {
			j.phase = landed
		}
		t.wired++
	}
}

// ask is an all-to-all-v of one number a rank: the longest block that each has.
func (t *Transport) ask(j *job) fabric.Call {
	j.asking = true
	half := len(t.asked) / 2
	for r := range t.world {
		binary.LittleEndian.PutUint64(t.asked[8*r:], uint64(j.e.shape.Longest()))
		t.lengths[r], t.lengths[t.world+r] = 8, 8
	}
	return fabric.Call{Op: fabric.AllToAllV, In: t.asked[:half], Out: t.asked[half:], Lengths: t.lengths[:t.world], InLengths: t.lengths[t.world:]}
}

func (t *Transport) answer() (largest uint64) {
	for r := range t.world {
		largest = max(largest, binary.LittleEndian.Uint64(t.asked[len(t.asked)/2+8*r:]))
	}
	return largest
}

// maxBlock is beyond any machine.
const maxBlock = 1 << 40

// fetch brings the newest part's input down, or begins the next part.
func (t *Transport) fetch() bool {
	if t.begun > t.wired {
		if j := t.job(t.begun - 1); j.phase == fetching {
			return t.fetchOne(j)
		}
	}
	if t.begun-t.lifted == sets {
		return false
	}
	j := t.job(t.begun)
	*j = job{input: t.slabs.input(int(t.begun % sets)), output: t.slabs.output(int(t.begun % sets)), vector: t.slabs.vector(int(t.begun % sets)), since: t.proxy.now}
	if !t.gate.next(j) {
		return false
	}
	t.begun++
	t.fetchOne(j)
	return true
}

func (t *Transport) fetchOne(j *job) bool {
	if !j.e.vector {
		if !j.staged && !t.copied(&t.proxy.down, j, (*Transport).startVector) {
			return false
		}
		if err := j.e.learn(t, j.vector.mem); err != nil {
			t.fail(&fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: t.rank, Text: err.Error()})
			return true
		}
		t.gate.learned(j)
		j.since = t.proxy.now
		return true
	}
	if !j.staged && !t.copied(&t.proxy.down, j, (*Transport).startFetch) {
		return false
	}
	j.phase = fetched
	return true
}

func (t *Transport) startVector(j *job) (none bool, err error) {
	t.pieces = append(t.pieces[:0], plan.Piece{Bytes: 4 * t.world})
	return false, t.proxy.down.start(t.proxy, j, t.pieces, func(plan.Piece) (dst, src uintptr) {
		return j.vector.device, uintptr(j.e.call.Device.Lengths)
	})
}

func (t *Transport) startFetch(j *job) (none bool, err error) {
	e := j.e
	if e.out != nil {
		whole := e.shape.Part(j.part, t.lengths).Out
		if t.pieces = e.shape.Up(t.pieces[:0], j.part); len(t.pieces) == 1 && t.pieces[0].Bytes == whole {
			j.outPlace = e.out[t.pieces[0].Buffer:][:t.pieces[0].Bytes:t.pieces[0].Bytes]
		}
	}
	t.pieces = e.shape.Down(t.pieces[:0], j.part)
	switch {
	case len(t.pieces) == 0:
		return true, nil
	case e.in != nil && len(t.pieces) == 1:
		j.inPlace = e.in[t.pieces[0].Buffer:][:t.pieces[0].Bytes:t.pieces[0].Bytes]
		return true, nil
	case e.in != nil:
		for _, p := range t.pieces {
			copy(j.input.mem[p.Slab:][:p.Bytes], e.in[p.Buffer:])
		}
		return true, nil
	}
	in := uintptr(e.call.Device.In)
	return false, t.proxy.down.start(t.proxy, j, t.pieces, func(p plan.Piece) (dst, src uintptr) {
		return j.input.device + uintptr(p.Slab), in + uintptr(p.Buffer)
	})
}
