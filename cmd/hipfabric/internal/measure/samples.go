package measure

import (
	"math"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// timings are how long each call took, in nanoseconds, and of a call on device memory the part in which it was queued.
type timings struct{ total, queued []int64 }

// sample makes the calls one after the other and keeps how long each took. It allocates nothing.
func (b *bench) sample(warmup int, t timings) error {
	if b.device != nil {
		return b.sampleQueued(warmup, t)
	}
	samples := t.total
	for range warmup {
		if err := b.call(); err != nil {
			return err
		}
	}
	epoch := time.Now()
	steps := int64(b.steps)
	last := time.Since(epoch)
	for i := range samples {
		if err := b.call(); err != nil {
			return err
		}
		now := time.Since(epoch)
		samples[i] = int64(now-last) / steps
		last = now
	}
	return nil
}

// sampleQueued waits for the stream after each call, so that what it times is a whole one; on a busy stream calls overlap.
func (b *bench) sampleQueued(warmup int, t timings) error {
	if err := b.device.up(); err != nil {
		return err
	}
	epoch, steps := time.Now(), int64(b.steps)
	last := time.Since(epoch)
	for i := -warmup; i < len(t.total); i++ {
		if err := b.call(); err != nil {
			return err
		}
		queued := time.Since(epoch)
		if err := b.device.settle(); err != nil {
			return err
		}
		now := time.Since(epoch)
		if i >= 0 {
			t.queued[i], t.total[i] = int64(queued-last)/steps, int64(now-last)/steps
		}
		last = now
	}
	return nil
}

// copies times plain copies of the spec's bytes, as often as there were samples, and gives their median in microseconds.
// All ranks copy at once, as they would around a call, and share the memory.
func (b *bench) copies(samples []int64) (float64, error) {
	from, to := make([]byte, b.bytes), make([]byte, b.bytes)
	fill(from, poison)
	fill(to, poison) // the first touch of a page is no part of a copy
	if err := b.host.Barrier(); err != nil {
		return 0, err
	}
	for i := range samples {
		began := time.Now()
		copy(to, from)
		samples[i] = int64(time.Since(began))
	}
	slices.Sort(samples)
	return float64(Percentile(samples, 0.5)) / 1e3, b.host.Barrier()
}

// Percentile is the smallest sample that at least a share q of all are not above; sorted ascends and is not empty.
func Percentile(sorted []int64, q float64) int64 {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Result is an operation at a size, as --json prints it.
type Result struct {
	Schema string `json:"schema"`
	Kind   string `json:"kind"`
	About  string `json:"about,omitempty"` // the gate and the device of calls on device memory
	Op     string `json:"op"`
	World  int    `json:"world"`
	Bytes  int    `json:"bytes"` // that a rank contributes
	DType  string `json:"dtype"` // "u8" of what moves bytes
	Redop  string `json:"redop"` // "none" of what moves bytes

	InPlace bool `json:"in_place"` // in lay within out, and was what the call before had left there

	Iters  int     `json:"iters"`
	Lanes  int     `json:"lanes"`
	MinUs  float64 `json:"min_us"`
	AvgUs  float64 `json:"avg_us"`
	P50Us  float64 `json:"p50_us"`
	P90Us  float64 `json:"p90_us"`
	P99Us  float64 `json:"p99_us"`
	P999Us float64 `json:"p999_us"`
	MaxUs  float64 `json:"max_us"`
	AlgBW  float64 `json:"algbw_GBps"`
	BusBW  float64 `json:"busbw_GBps"`
	Wrong  *int64  `json:"wrong"` // elements, over all ranks; null when not checked

	// CopyUs is the median time of a plain copy of Bytes, made after the calls in the same process by all ranks at once;
	// absent when not asked for.
	CopyUs *float64 `json:"copy_us,omitempty"`
	// QueuedP50Us is the median time that the caller spent in queueing a call on device memory; absent on host memory.
	QueuedP50Us *float64 `json:"queued_p50_us,omitempty"`
}

// Schema names the form of a Result's JSON.
const Schema = "hipfabric.perf/1"

func (b *bench) result(t timings, wrong *int64) Result {
	sorted := slices.Clone(t.total)
	slices.Sort(sorted)
	var sum float64
	for _, ns := range sorted {
		sum += float64(ns)
	}
	mean := sum / float64(len(sorted))
	us := func(q float64) float64 { return float64(Percentile(sorted, q)) / 1e3 }
	r := Result{Schema: Schema, Kind: b.kind, About: b.about, Op: b.op.String(), World: b.world, Bytes: b.bytes, DType: fabric.U8.String(), Redop: "none",
		InPlace: b.inPlace, Iters: len(t.total), Lanes: lanes(b.host), MinUs: us(0), AvgUs: mean / 1e3, P50Us: us(0.5), P90Us: us(0.9), P99Us: us(0.99), P999Us: us(0.999),
		MaxUs: us(1), Wrong: wrong}
	if b.op.Reduces() {
		r.DType, r.Redop = b.dtype.String(), b.reduce.String()
	}
	r.AlgBW, r.BusBW = Bandwidth(b.op, b.world, b.bytes, mean)
	if t.queued != nil {
		queued := slices.Clone(t.queued)
		slices.Sort(queued)
		p50 := float64(Percentile(queued, 0.5)) / 1e3
		r.QueuedP50Us = &p50
	}
	return r
}

// Bandwidth gives nccl-tests' algbw and busbw in GB/s of an operation to which each rank contributes bytes and that takes
// ns: of a gather the bytes are all ranks', and busbw is corrected for what never leaves a rank and what crosses twice.
func Bandwidth(op fabric.Op, world, bytes int, ns float64) (alg, bus float64) {
	if ns <= 0 || bytes == 0 {
		return 0, 0
	}
	alg = float64(bytes) / ns
	share := float64(world-1) / float64(world)
	switch op {
	case fabric.AllGather, fabric.AllGatherV, fabric.AllGatherRows:
		alg *= float64(world)
		return alg, alg * share
	case fabric.AllReduce:
		return alg, alg * 2 * share
	case fabric.ReduceScatter, fabric.AllToAll, fabric.AllToAllV:
		return alg, alg * share
	default:
		return alg, alg
	}
}

// lanes is how many connections rank 0 has to a peer, the most of all.
func lanes(c *fabric.Collective) int {
	most := 1
	for _, p := range c.Stats().Transport.Peers {
		n := 0
		for _, r := range p.Rails {
			n += r.Lanes
		}
		most = max(most, n)
	}
	return most
}
