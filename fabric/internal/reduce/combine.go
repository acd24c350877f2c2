package reduce

import "github.com/hipfabric/hipfabric/fabric"

// Combine puts the combination of all ranks' ins, given in rank order, into out. All have the same length, a multiple
// of dt's size, with op defined for dt: the caller has checked. out may be exactly one of ins, and may not overlap any
// otherwise. Buffers need no alignment. It neither blocks nor allocates and is safe for concurrent use on distinct outs.
func Combine(out []byte, ins [][]byte, dt fabric.DType, op fabric.ReduceOp) {
	combine(out, ins, dt, op, byVectors)
}

// way is how fast to go; a slower way does what a faster one left.
type way int

const (
	byReference way = iota
	byLoops
	byVectors
)

func combine(out []byte, ins [][]byte, dt fabric.DType, op fabric.ReduceOp, fastest way) {
	at := 0
	if fastest >= byVectors {
		at = vectors(out, ins, dt, op)
	}
	if fastest >= byLoops {
		at = loops(out, ins, at, dt, op)
	}
	reference(out, ins, at, dt, op)
}

func (w way) String() string { return [...]string{"reference", "loops", "vectors"}[w] }
