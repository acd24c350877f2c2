//go:build (amd64 || arm64) && !purego

package reduce

import "github.com/hipfabric/hipfabric/fabric"

const (
	// grain is how many bytes of out a kernel makes before the runtime may stop this goroutine again.
	grain = 32 << 10
	// streamBytes is from where out passes through the caches rather than staying there for whoever reads it next.
	streamBytes = 4 << 20
)

// kernel combines out[at:end], a whole number of vectors, over all ranks in order; out may be one of ins. With stream not
// zero it may leave the result outside the caches.
type kernel func(out *byte, ins *[]byte, world, at, end, stream int)

// kernels by dtype and op; nil where the reference does.
var kernels = [fabric.F64 + 1][fabric.Avg + 1]kernel{
	fabric.I32:  {fabric.Sum: sumI32, fabric.Prod: prodI32, fabric.Max: maxI32, fabric.Min: minI32},
	fabric.I64:  {fabric.Sum: sumI64},
	fabric.F16:  {fabric.Sum: sumF16, fabric.Prod: prodF16, fabric.Max: maxF16, fabric.Min: minF16, fabric.Avg: avgF16},
	fabric.BF16: {fabric.Sum: sumBF16, fabric.Prod: prodBF16, fabric.Max: maxBF16, fabric.Min: minBF16, fabric.Avg: avgBF16},
	fabric.F32:  {fabric.Sum: sumF32, fabric.Prod: prodF32, fabric.Max: maxF32, fabric.Min: minF32, fabric.Avg: avgF32},
	fabric.F64:  {fabric.Sum: sumF64, fabric.Prod: prodF64, fabric.Max: maxF64, fabric.Min: minF64, fabric.Avg: avgF64},
}

// vectors combines the whole vectors of out, if there is a kernel that this processor runs, and returns the bytes done.
func vectors(out []byte, ins [][]byte, dt fabric.DType, op fabric.ReduceOp) int {
	n := len(out) &^ (vectorBytes - 1)
	k := kernels[dt][op]
	if n == 0 || k == nil || !capable(dt) {
		return 0
	}
	for at := 0; at < n; at += grain {
		k(&out[0], &ins[0], len(ins), at, min(at+grain, n), n/streamBytes)
	}
	return n
}

func sumI32(out *byte, ins *[]byte, world, at, end, stream int)
func prodI32(out *byte, ins *[]byte, world, at, end, stream int)
func maxI32(out *byte, ins *[]byte, world, at, end, stream int)
func minI32(out *byte, ins *[]byte, world, at, end, stream int)
func sumI64(out *byte, ins *[]byte, world, at, end, stream int)
func sumF16(out *byte, ins *[]byte, world, at, end, stream int)
func prodF16(out *byte, ins *[]byte, world, at, end, stream int)
func maxF16(out *byte, ins *[]byte, world, at, end, stream int)
func minF16(out *byte, ins *[]byte, world, at, end, stream int)
func avgF16(out *byte, ins *[]byte, world, at, end, stream int)
func sumBF16(out *byte, ins *[]byte, world, at, end, stream int)
func prodBF16(out *byte, ins *[]byte, world, at, end, stream int)
func maxBF16(out *byte, ins *[]byte, world, at, end, stream int)
func minBF16(out *byte, ins *[]byte, world, at, end, stream int)
func avgBF16(out *byte, ins *[]byte, world, at, end, stream int)
func sumF32(out *byte, ins *[]byte, world, at, end, stream int)
func prodF32(out *byte, ins *[]byte, world, at, end, stream int)
func maxF32(out *byte, ins *[]byte, world, at, end, stream int)
func minF32(out *byte, ins *[]byte, world, at, end, stream int)
func avgF32(out *byte, ins *[]byte, world, at, end, stream int)
func sumF64(out *byte, ins *[]byte, world, at, end, stream int)
func prodF64(out *byte, ins *[]byte, world, at, end, stream int)
func maxF64(out *byte, ins *[]byte, world, at, end, stream int)
func minF64(out *byte, ins *[]byte, world, at, end, stream int)
func avgF64(out *byte, ins *[]byte, world, at, end, stream int)
