package measure

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	maxSizes = 1000
	maxIters = 10_000_000
	maxPlan  = 32 << 10 // bytes of a shared plan
)

// Mode is what to do.
type Mode string

const (
	Time  Mode = "time"  // check, then time each operation at each size
	Suite Mode = "suite" // the long check
	Kill  Mode = "kill"  // one rank ends itself during calls
)

// Plan is what rank 0 has all ranks do.
type Plan struct {
	Mode   Mode            `json:"mode"`
	Ops    []fabric.Op     `json:"ops"`
	Sizes  []int           `json:"sizes"` // bytes that a rank contributes
	DType  fabric.DType    `json:"dtype"` // of reductions
	Reduce fabric.ReduceOp `json:"reduce"`
	Iters  int             `json:"iters"`
	Warmup int             `json:"warmup"`
	Check  bool            `json:"check"`
	Seed   uint64          `json:"seed"`

	InPlace bool `json:"in_place"` // all-gather and all-reduce with in at its place in out
	Copy    bool `json:"copy"`     // time a copy of as many bytes as well
	Receipt bool `json:"receipt"`  // rank 0 wants to hear what every rank runs on

	KillAfterNs int64 `json:"kill_after_ns"`
	Victim      int   `json:"victim"`
}

// Validate refuses what cannot be done by world ranks.
func (p *Plan) Validate(world int) error {
	if p.Iters < 1 || p.Iters > maxIters {
		return fabric.Invalidf("iters is %d, outside 1..%d", p.Iters, maxIters)
	}
	if p.Warmup < 0 || p.Warmup > maxIters {
		return fabric.Invalidf("warmup is %d, outside 0..%d", p.Warmup, maxIters)
	}
	if len(p.Sizes) > maxSizes {
		return fabric.Invalidf("%d sizes are more than %d", len(p.Sizes), maxSizes)
	}
	for _, op := range p.Ops {
		if op.Class() == fabric.Pair && world < 2 {
			return fabric.Invalidf("%v needs two ranks, and this group has %d", op, world)
		}
		if _, ok := place(op, 0, 0); p.InPlace && !ok {
			return fabric.Invalidf("%v has no form in place; all-gather and all-reduce have", op)
		}
		if op.Reduces() && !p.Reduce.Takes(p.DType) {
			return fabric.Invalidf("redop %v of dtype %v: avg takes floating-point types only", p.Reduce, p.DType)
		}
	}
	if p.Mode == Kill && (p.Victim < 0 || p.Victim >= world || world < 2) {
		return fabric.Invalidf("the rank to kill is %d; a rank of a world of at least 2 is needed, this one has %d", p.Victim, world)
	}
	return nil
}

// Control is the part of a group's control channel that sharing a plan takes.
type Control interface {
	Broadcast(ctx context.Context, msg []byte) error
	Recv(ctx context.Context, buf []byte) (n, from int, err error)
}

// Share gives every rank rank 0's plan.
func Share(ctx context.Context, c Control, rank int, p Plan) (Plan, error) {
	if rank == 0 {
		msg, err := json.Marshal(p)
		if err != nil {
			return p, fmt.Errorf("write the plan: %w", err)
		}
		return p, c.Broadcast(ctx, msg)
	}
	buf := make([]byte, maxPlan)
	n, _, err := c.Recv(ctx, buf)
	if err != nil {
		return p, err
	}
	var shared Plan
	if err := json.Unmarshal(buf[:n], &shared); err != nil {
		return p, fmt.Errorf("read rank 0's plan: %w", err)
	}
	return shared, nil
}
