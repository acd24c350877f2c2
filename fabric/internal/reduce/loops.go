package reduce

import (
	"math"

	"github.com/hipfabric/hipfabric/fabric"
)

// loops combines sums and averages from byte at on by fours (doubles by twos) and returns where it stopped: short of four,
// or at once if there is no loop for dt and op. Like a kernel, a loop writes four when it has them from every rank.
func loops(out []byte, ins [][]byte, at int, dt fabric.DType, op fabric.ReduceOp) int {
	if op != fabric.Sum && op != fabric.Avg {
		return at
	}
	switch dt {
	case fabric.F32:
		return loopF32(out, ins, at, op == fabric.Avg)
	case fabric.F64:
		return loopF64(out, ins, at, op == fabric.Avg)
	case fabric.BF16:
		return loopBF16(out, ins, at, op == fabric.Avg)
	case fabric.I32:
		return loopI32(out, ins, at)
	default:
		return at
	}
}

func loopF32(out []byte, ins [][]byte, at int, avg bool) int {
	world := float32(len(ins))
	for ; len(out)-at >= 16; at += 16 {
		in := ins[0][at : at+16]
		a, b, c, d := f32(in), f32(in[4:]), f32(in[8:]), f32(in[12:])
		for _, in := range ins[1:] {
			in = in[at : at+16]
			a, b, c, d = a+f32(in), b+f32(in[4:]), c+f32(in[8:]), d+f32(in[12:])
		}
		if avg {
			a, b, c, d = a/world, b/world, c/world, d/world
		}
		to := out[at : at+16]
		order.PutUint32(to, bits32(a))
		order.PutUint32(to[4:], bits32(b))
		order.PutUint32(to[8:], bits32(c))
		order.PutUint32(to[12:], bits32(d))
	}
	return at
}

func loopF64(out []byte, ins [][]byte, at int, avg bool) int {
	world := float64(len(ins))
	for ; len(out)-at >= 16; at += 16 {
		in := ins[0][at : at+16]
		a, b := f64(in), f64(in[8:])
		for _, in := range ins[1:] {
			in = in[at : at+16]
			a, b = a+f64(in), b+f64(in[8:])
		}
		if avg {
			a, b = a/world, b/world
		}
		to := out[at : at+16]
		order.PutUint64(to, bits64(a))
		order.PutUint64(to[8:], bits64(b))
	}
	return at
}

func loopBF16(out []byte, ins [][]byte, at int, avg bool) int {
	world := float32(len(ins))
	for ; len(out)-at >= 8; at += 8 {
		a, b, c, d := fourBF16(ins[0][at:])
		for _, in := range ins[1:] {
			e, f, g, h := fourBF16(in[at:])
			a, b, c, d = a+e, b+f, c+g, d+h
		}
		if avg {
			a, b, c, d = a/world, b/world, c/world, d/world
		}
		order.PutUint64(out[at:], uint64(toBF16(a))|uint64(toBF16(b))<<16|uint64(toBF16(c))<<32|uint64(toBF16(d))<<48)
	}
	return at
}

func fourBF16(b []byte) (_, _, _, _ float32) {
	const upper = 0xffff << 16
	low, high := uint32(order.Uint64(b)), uint32(order.Uint64(b)>>32)
	return math.Float32frombits(low << 16), math.Float32frombits(low & upper), math.Float32frombits(high << 16), math.Float32frombits(high & upper)
}

func loopI32(out []byte, ins [][]byte, at int) int {
	for ; len(out)-at >= 16; at += 16 {
		in := ins[0][at : at+16]
		a, b, c, d := order.Uint32(in), order.Uint32(in[4:]), order.Uint32(in[8:]), order.Uint32(in[12:])
		for _, in := range ins[1:] {
			in = in[at : at+16]
			a, b, c, d = a+order.Uint32(in), b+order.Uint32(in[4:]), c+order.Uint32(in[8:]), d+order.Uint32(in[12:])
		}
		to := out[at : at+16]
		order.PutUint32(to, a)
		order.PutUint32(to[4:], b)
		order.PutUint32(to[8:], c)
		order.PutUint32(to[12:], d)
	}
	return at
}

func f32(b []byte) float32 { return math.Float32frombits(order.Uint32(b)) }
func f64(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }

func bits32(v float32) uint32 {
	if v != v {
		return nanF32
	}
	return math.Float32bits(v)
}

func bits64(v float64) uint64 {
	if v != v {
		return nanF64
	}
	return math.Float64bits(v)
}
