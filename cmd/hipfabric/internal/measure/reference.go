package measure

import (
	"encoding/binary"
	"math"

	"github.com/hipfabric/hipfabric/fabric"
)

// reference combines ins, in rank order, into out: an element at a time by the contract's words. It shares nothing with
// the library's own sums, so that the two check each other.
func reference(out []byte, ins [][]byte, dt fabric.DType, op fabric.ReduceOp) {
	for at := 0; at < len(out); at += dt.Size() {
		switch dt {
		case fabric.F64:
			acc := number[float64]{op: op}
			for _, in := range ins {
				acc.fold(math.Float64frombits(binary.LittleEndian.Uint64(in[at:])))
			}
			bits := math.Float64bits(acc.result(len(ins)))
			if math.IsNaN(acc.value) {
				bits = 0x7ff8000000000000
			}
			binary.LittleEndian.PutUint64(out[at:], bits)
		case fabric.F16, fabric.BF16, fabric.F32:
			acc := number[float32]{op: op}
			for _, in := range ins {
				acc.fold(widen(in[at:], dt))
			}
			narrow(out[at:], acc.result(len(ins)), dt)
		default:
			acc := number[int64]{op: op}
			for _, in := range ins {
				acc.fold(integer(in[at:], dt))
			}
			for i := range dt.Size() {
				out[at+i] = byte(acc.value >> (8 * i))
			}
		}
	}
}

// number is an accumulator in the type that the contract accumulates in.
type number[T int64 | float32 | float64] struct {
	op    fabric.ReduceOp
	value T
	some  bool
}

func (n *number[T]) fold(v T) {
	switch {
	case !n.some:
		n.value, n.some = v, true
	case n.op == fabric.Prod:
		n.value *= v
	case n.op == fabric.Max:
		n.value = max(n.value, v)
	case n.op == fabric.Min:
		n.value = min(n.value, v)
	default:
		n.value += v
	}
}

func (n *number[T]) result(world int) T {
	if n.op == fabric.Avg {
		return n.value / T(world)
	}
	return n.value
}

func integer(b []byte, dt fabric.DType) int64 {
	switch dt {
	case fabric.U8:
		return int64(b[0])
	case fabric.I8:
		return int64(int8(b[0]))
	case fabric.I32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	default:
		return int64(binary.LittleEndian.Uint64(b))
	}
}

func widen(b []byte, dt fabric.DType) float32 {
	switch dt {
	case fabric.F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case fabric.BF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}
	h := binary.LittleEndian.Uint16(b)
	exponent, mantissa := int(h>>10&31), float64(h&0x3ff)
	value := math.Ldexp(mantissa, -24)
	switch {
	case exponent == 31 && mantissa == 0:
		value = math.Inf(1)
	case exponent == 31:
		value = math.NaN()
	case exponent > 0:
		value = math.Ldexp(1024+mantissa, exponent-25)
	}
	if h&0x8000 != 0 {
		value = -value
	}
	return float32(value)
}

func narrow(b []byte, v float32, dt fabric.DType) {
	nan := v != v
	switch {
	case dt == fabric.F32 && nan:
		binary.LittleEndian.PutUint32(b, 0x7fc00000)
	case dt == fabric.F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(v))
	case dt == fabric.BF16 && nan:
		binary.LittleEndian.PutUint16(b, 0x7fc0)
	case dt == fabric.BF16:
		binary.LittleEndian.PutUint16(b, brain(v))
	case nan:
		binary.LittleEndian.PutUint16(b, 0x7e00)
	default:
		binary.LittleEndian.PutUint16(b, half(float64(v)))
	}
}

// brain rounds to the nearer of two neighbours, to the even one of equals.
func brain(v float32) uint16 {
	bits := math.Float32bits(v)
	below, rest := uint16(bits>>16), bits&0xffff
	if rest > 0x8000 || rest == 0x8000 && below&1 == 1 {
		below++
	}
	return below
}

// half rounds v to a multiple of the last bit of its binade, to even in the middle.
func half(v float64) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign, v = 0x8000, -v
	}
	switch {
	case v == 0:
		return sign
	case v >= 65520:
		return sign | 0x7c00
	}
	_, exponent := math.Frexp(v)
	last := max(exponent-11, -24) // of v's bits, as a power of two
	steps := uint16(math.RoundToEven(math.Ldexp(v, -last)))
	// Steps of a normal number count from 1024 on, and 2048 is the next binade's first.
	return sign | (uint16(last+24)<<10 + steps)
}
