package measure

import (
	"errors"

	"github.com/hipfabric/hipfabric/fabric"
)

// Recorder captures what record queues on a Device's stream, once, and hands back what queues all of it again. end frees it.
type Recorder func(record func() error) (launch, end func() error, err error)

// RunReplays captures every operation, at a size below and one above a part, and launches the recording on fresh input again and
// again, each result checked. on has a Device. The tally's calls are those of all replays.
func RunReplays(on Subject, p Plan, record Recorder, replays int) (_ Tally, err error) {
	tally := Tally{What: "captured graph"}
	var benches []*bench
	defer func() {
		for _, b := range benches {
			err = errors.Join(err, b.close())
		}
	}()
	for _, op := range fabric.Ops() {
		if op == fabric.Recv || op.Class() == fabric.Pair && on.Host.World() < 2 {
			continue
		}
		for _, bytes := range []int{1000, 600_000} {
			on.Device = &Device{C: on.Device.C, Stream: on.Device.Stream, Memory: on.Device.Memory} // each bench has memory of its own
			b, err := newBench(on, spec{op: op, bytes: bytes - bytes%(8*on.Host.World()), dtype: p.DType, reduce: p.Reduce, seed: p.Seed + uint64(len(benches))})
			if err != nil {
				return tally, err
			}
			benches = append(benches, b)
		}
	}
	launch, end, err := record(func() error {
		for _, b := range benches {
			if err := b.call(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return tally, err
	}
	for round := range replays {
		wrong, err := replay(benches, round, launch)
		if err != nil {
			return tally, err
		}
		tally.Calls += len(benches)
		tally.Wrong += int64(wrong)
	}
	if err := end(); err != nil {
		return tally, err
	}
	if tally.Wrong, err = total(on.Host, tally.Wrong); err != nil {
		return tally, err
	}
	return tally, verdict(tally.Wrong)
}

func replay(benches []*bench, round int, launch func() error) (wrong int, err error) {
	for _, b := range benches {
		b.prepare(round)
		if err := b.device.up(); err != nil {
			return 0, err
		}
	}
	if err := launch(); err != nil {
		return 0, err
	}
	for _, b := range benches {
		if err := firstOf(b.device.settle(), b.device.down); err != nil {
			return 0, err
		}
		b.expect(round)
		wrong += b.differences()
	}
	return wrong, nil
}
