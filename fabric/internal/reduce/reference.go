package reduce

import "github.com/hipfabric/hipfabric/fabric"

// blockElements is how many elements the reference folds at a time: small enough for two blocks of accumulators on the stack,
// large enough that choosing a loop costs nothing.
const blockElements = 128

// reference is what every other way is measured by, and does what no other way does: all dtypes, all ops, from byte at on.
func reference(out []byte, ins [][]byte, at int, dt fabric.DType, op fabric.ReduceOp) {
	step := blockElements * dt.Size()
	for ; at < len(out); at += step {
		end := min(at+step, len(out))
		switch dt {
		case fabric.F16, fabric.BF16, fabric.F32:
			combineFloat32(out, ins, at, end, dt, op)
		case fabric.F64:
			combineFloat64(out, ins, at, end, op)
		default:
			combineInt(out, ins, at, end, dt, op)
		}
	}
}

func combineFloat32(out []byte, ins [][]byte, at, end int, dt fabric.DType, op fabric.ReduceOp) {
	var accBlock, inBlock [blockElements]float32
	n := (end - at) / dt.Size()
	acc, in := accBlock[:n], inBlock[:n]
	loadFloat32(acc, ins[0][at:end], dt)
	for _, b := range ins[1:] {
		loadFloat32(in, b[at:end], dt)
		fold(acc, in, op)
	}
	if op == fabric.Avg {
		divide(acc, len(ins))
	}
	storeFloat32(out[at:end], acc, dt)
}

func combineFloat64(out []byte, ins [][]byte, at, end int, op fabric.ReduceOp) {
	var accBlock, inBlock [blockElements]float64
	n := (end - at) / 8
	acc, in := accBlock[:n], inBlock[:n]
	loadF64(acc, ins[0][at:end])
	for _, b := range ins[1:] {
		loadF64(in, b[at:end])
		fold(acc, in, op)
	}
	if op == fabric.Avg {
		divide(acc, len(ins))
	}
	storeF64(out[at:end], acc)
}

// combineInt accumulates every integer type in int64: sums and products modulo 2^64 are right modulo every lower power,
// and a maximum or minimum never leaves its type.
func combineInt(out []byte, ins [][]byte, at, end int, dt fabric.DType, op fabric.ReduceOp) {
	var accBlock, inBlock [blockElements]int64
	n := (end - at) / dt.Size()
	acc, in := accBlock[:n], inBlock[:n]
	loadInt(acc, ins[0][at:end], dt)
	for _, b := range ins[1:] {
		loadInt(in, b[at:end], dt)
		fold(acc, in, op)
	}
	storeInt(out[at:end], acc, dt)
}

// fold relies on the language's max and min: a NaN wins, and -0 is less than +0.
func fold[T int64 | float32 | float64](acc, in []T, op fabric.ReduceOp) {
	in = in[:len(acc)]
	switch op {
	case fabric.Sum, fabric.Avg:
		for i := range acc {
			acc[i] += in[i]
		}
	case fabric.Prod:
		for i := range acc {
			acc[i] *= in[i]
		}
	case fabric.Max:
		for i := range acc {
			acc[i] = max(acc[i], in[i])
		}
	case fabric.Min:
		for i := range acc {
			acc[i] = min(acc[i], in[i])
		}
	}
}

func divide[T float32 | float64](acc []T, world int) {
	for i := range acc {
		acc[i] /= T(world)
	}
}
