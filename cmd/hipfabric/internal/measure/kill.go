package measure

import (
	"fmt"
	"os"
	"time"
)

// Receipt says how the end of a rank reached this one.
type Receipt struct {
	Rank   int
	Victim int
	Calls  uint64        // made before
	After  time.Duration // from the moment of the kill to this rank's error
	Err    error
}

func (r Receipt) String() string {
	return fmt.Sprintf("receipt: rank %d lost rank %d after %d calls and knew it in %.1f ms: %v", r.Rank, r.Victim, r.Calls,
		float64(r.After.Microseconds())/1e3, r.Err)
}

// RunKill has all ranks make the plan's first operation until the victim kills its own process at KillAfter, counted
// from a barrier. A survivor gets the receipt and the error that ended its calls. The time counts from when the kill was due, so it
// holds how late the victim's clock rang and how far apart the ranks left the barrier.
func RunKill(on Subject, p Plan) (Receipt, error) {
	c := on.Host
	b, err := newBench(on, spec{op: p.Ops[0], bytes: p.Sizes[0], dtype: p.DType, reduce: p.Reduce, seed: p.Seed, inPlace: p.InPlace})
	if err != nil {
		return Receipt{}, err
	}
	if err := c.Barrier(); err != nil {
		return Receipt{}, err
	}
	due := time.Now().Add(time.Duration(p.KillAfterNs))
	if c.Rank() == p.Victim {
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return Receipt{}, err
		}
		time.AfterFunc(time.Until(due), func() { _ = self.Kill() })
	}
	r := Receipt{Rank: c.Rank(), Victim: p.Victim}
	for {
		if r.Err = b.once(); r.Err != nil {
			r.After = time.Since(due)
			return r, r.Err
		}
		r.Calls++
	}
}
