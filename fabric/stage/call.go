package stage

import "time"

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
	if moved = t.fetch() || moved; moved {
		t.moved.Add(1)
	}
	return moved
}

func (t *Transport) job(n uint64) *job { return &t.jobs[n%sets] }
