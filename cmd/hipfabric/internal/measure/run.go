package measure

import (
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// ErrWrong says that a call gave other bytes than it must.
var ErrWrong = errors.New("wrong data")

// rounds is how often each operation is checked before it is timed: on any bits, and on ordinary numbers.
const rounds = 2

// Run checks and times each operation of the plan at each size and hands on what came of it: on rank 0 its samples, in
// nanoseconds, worth until emit returns; on other ranks only how much was wrong counts. Wrong data is ErrWrong at the end,
// on every rank.
func Run(on Subject, p Plan, emit func(Result, []int64) error) error {
	var bad int64
	t := timings{total: make([]int64, p.Iters)}
	if on.Device != nil {
		t.queued = make([]int64, p.Iters)
	}
	for _, op := range p.Ops {
		sizes := p.Sizes
		if op == fabric.Barrier {
			sizes = sizes[:1]
		}
		for _, bytes := range sizes {
			wrong, err := p.one(on, op, bytes, t, emit)
			if err != nil {
				return err
			}
			bad += wrong
		}
	}
	return verdict(bad)
}

func (p *Plan) one(on Subject, op fabric.Op, bytes int, t timings, emit func(Result, []int64) error) (_ int64, err error) {
	c := on.Host
	b, err := newBench(on, spec{op: op, bytes: bytes, dtype: p.DType, reduce: p.Reduce, seed: p.Seed, inPlace: p.InPlace})
	if err != nil {
		return 0, err
	}
	defer func() { err = firstOf(err, b.close) }()
	var wrong *int64
	if p.Check {
		n, err := b.checkAll()
		if err != nil {
			return 0, err
		}
		wrong = &n
	}
	if err := c.Barrier(); err != nil {
		return 0, err
	}
	if err := b.sample(p.Warmup, t); err != nil {
		return 0, err
	}
	if err := c.Barrier(); err != nil {
		return 0, err
	}
	var result Result
	if c.Rank() == 0 {
		result = b.result(t, wrong)
	}
	if p.Copy {
		us, err := b.copies(make([]int64, p.Iters)) // the calls' own are still to be emitted
		if err != nil {
			return 0, err
		}
		result.CopyUs = &us
	}
	if c.Rank() == 0 {
		if err := emit(result, t.total); err != nil {
			return 0, err
		}
	}
	if wrong == nil {
		return 0, nil
	}
	return *wrong, nil
}

// checkAll counts the wrong elements over all rounds and ranks.
func (b *bench) checkAll() (int64, error) {
	var wrong int
	for round := range rounds {
		n, err := b.check(round)
		if err != nil {
			return 0, err
		}
		wrong += n
	}
	return total(b.host, int64(wrong))
}

// total sums n over all ranks.
func total(c *fabric.Collective, n int64) (int64, error) {
	in, out := []int64{n}, []int64{0}
	err := c.AllReduce(fabric.Bytes(out), fabric.Bytes(in), fabric.I64, fabric.Sum)
	return out[0], err
}

func verdict(wrong int64) error {
	if wrong != 0 {
		return fmt.Errorf("%w: %d elements are not what they should be, bit for bit", ErrWrong, wrong)
	}
	return nil
}
