//go:build amd64 && !purego

package reduce

import "github.com/hipfabric/hipfabric/fabric"

// grain is how many bytes of out a kernel makes before the runtime may stop this goroutine again.
const grain = 32 << 10

// kernel combines out[at:end], a whole number of vectors, over all ranks; out may be one of ins.
type kernel func(out *byte, ins *[]byte, world, at, end int)

var kernels = [fabric.F64 + 1][fabric.Avg + 1]kernel{
	fabric.F32: {fabric.Sum: sumF32, fabric.Prod: prodF32, fabric.Max: maxF32, fabric.Min: minF32, fabric.Avg: avgF32},
}

// vectors combines the whole vectors of out, if the processor can, and returns the bytes done.
func vectors(out []byte, ins [][]byte, dt fabric.DType, op fabric.ReduceOp) int {
	n := len(out) &^ (vectorBytes - 1)
	k := kernels[dt][op]
	if n == 0 || k == nil || !capable(dt) {
		return 0
	}
	for at := 0; at < n; at += grain {
		k(&out[0], &ins[0], len(ins), at, min(at+grain, n))
	}
	return n
}

func sumF32(out *byte, ins *[]byte, world, at, end int)
func prodF32(out *byte, ins *[]byte, world, at, end int)
func maxF32(out *byte, ins *[]byte, world, at, end int)
func minF32(out *byte, ins *[]byte, world, at, end int)
func avgF32(out *byte, ins *[]byte, world, at, end int)
