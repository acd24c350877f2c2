package reduce

import (
	"math"
	"math/big"

	"github.com/hipfabric/hipfabric/fabric"
)

// oracle combines one element by exact arithmetic, rounded where the contract rounds. It shares nothing with the
// package but the halves' conversions, which have an oracle of their own.
func oracle(ins [][]byte, dt fabric.DType, op fabric.ReduceOp) []byte {
	out := make([]byte, dt.Size())
	if !dt.Float() {
		acc := bigInt(ins[0], dt)
		for _, b := range ins[1:] {
			acc = foldInt(acc, bigInt(b, dt), op)
		}
		acc.And(acc, new(big.Int).SetUint64(math.MaxUint64>>(64-8*dt.Size())))
		for i, b := range acc.FillBytes(make([]byte, dt.Size())) {
			out[dt.Size()-1-i] = b
		}
		return out
	}
	acc := toFloat(ins[0], dt)
	for _, b := range ins[1:] {
		acc = narrow(foldFloat(acc, toFloat(b, dt), op), dt)
	}
	if op == fabric.Avg {
		acc = narrow(exactly(acc, float64(len(ins)), (*big.Float).Quo), dt)
	}
	v, _ := acc.nearest(dt)
	switch dt {
	case fabric.F16:
		order.PutUint16(out, formats()[0].encode(v))
	case fabric.BF16:
		order.PutUint16(out, formats()[1].encode(v))
	case fabric.F32:
		order.PutUint32(out, math.Float32bits(float32(v)))
		if v != v {
			order.PutUint32(out, 0x7fc00000)
		}
	default:
		order.PutUint64(out, math.Float64bits(v))
		if v != v {
			order.PutUint64(out, 0x7ff8000000000000)
		}
	}
	return out
}

// number is an accumulator: NaN when big is nil.
type number struct{ big *big.Float }

func (n number) nearest(dt fabric.DType) (float64, bool) {
	if n.big == nil {
		return math.NaN(), false
	}
	if dt == fabric.F64 {
		v, _ := n.big.Float64()
		return v, true
	}
	v, _ := n.big.Float32()
	return float64(v), true
}

// narrow rounds to the accumulator's type.
func narrow(n number, dt fabric.DType) number {
	v, ok := n.nearest(dt)
	if !ok {
		return n
	}
	return of(v)
}

// of is exact: the precision holds any sum or product of two float64.
func of(v float64) number {
	if v != v {
		return number{}
	}
	return number{new(big.Float).SetPrec(4400).SetFloat64(v)}
}

func exactly(a number, b float64, f func(z, x, y *big.Float) *big.Float) (n number) {
	y := of(b)
	if a.big == nil || y.big == nil {
		return number{}
	}
	defer func() { // big.Float panics where IEEE says NaN
		if e := recover(); e != nil {
			n = number{}
		}
	}()
	return number{f(new(big.Float).SetPrec(4400), a.big, y.big)}
}

func toFloat(b []byte, dt fabric.DType) number {
	switch dt {
	case fabric.F16:
		return of(formats()[0].decode(order.Uint16(b)))
	case fabric.BF16:
		return of(formats()[1].decode(order.Uint16(b)))
	case fabric.F32:
		return of(float64(math.Float32frombits(order.Uint32(b))))
	default:
		return of(math.Float64frombits(order.Uint64(b)))
	}
}

func foldFloat(a, b number, op fabric.ReduceOp) number {
	if a.big == nil || b.big == nil {
		return number{}
	}
	v, _ := b.nearest(fabric.F64)
	switch op {
	case fabric.Prod:
		return exactly(a, v, (*big.Float).Mul)
	case fabric.Max, fabric.Min:
		less := a.big.Cmp(b.big) < 0 || a.big.Cmp(b.big) == 0 && a.big.Signbit()
		if less == (op == fabric.Max) {
			return b
		}
		return a
	default:
		// big.Float gives +0 for x-x but, unlike IEEE, also for -0 + -0.
		if a.big.Sign() == 0 && b.big.Sign() == 0 && a.big.Signbit() && b.big.Signbit() {
			return a
		}
		return exactly(a, v, (*big.Float).Add)
	}
}

func bigInt(b []byte, dt fabric.DType) *big.Int {
	le := make([]byte, len(b))
	for i := range b {
		le[len(b)-1-i] = b[i]
	}
	v := new(big.Int).SetBytes(le)
	if dt != fabric.U8 && b[len(b)-1]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

func foldInt(a, b *big.Int, op fabric.ReduceOp) *big.Int {
	switch op {
	case fabric.Sum:
		return new(big.Int).Add(a, b)
	case fabric.Prod:
		return new(big.Int).Mul(a, b)
	case fabric.Max:
		if a.Cmp(b) < 0 {
			return b
		}
		return a
	default:
		if a.Cmp(b) > 0 {
			return b
		}
		return a
	}
}
