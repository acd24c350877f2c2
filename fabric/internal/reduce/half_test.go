package reduce

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// format describes a binary floating-point format, from which the oracle works by float64 arithmetic alone.
type format struct {
	name     string
	mantissa int // explicit bits
	bias     int
	nan      uint16
	from     func(uint16) float32
	to       func(float32) uint16
}

func formats() []format {
	return []format{{"f16", 10, 15, 0x7e00, fromF16, toF16}, {"bf16", 7, 127, 0x7fc0, fromBF16, toBF16}}
}

func (f format) exponentMask() int { return 1<<(15-f.mantissa) - 1 }

func (f format) decode(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	m, e := int(h)&(1<<f.mantissa-1), int(h>>f.mantissa)&f.exponentMask()
	switch {
	case e == f.exponentMask() && m == 0:
		return sign * math.Inf(1)
	case e == f.exponentMask():
		return math.NaN()
	case e == 0:
		return math.Copysign(math.Ldexp(float64(m), 1-f.bias-f.mantissa), sign)
	default:
		return sign * math.Ldexp(float64(m+1<<f.mantissa), e-f.bias-f.mantissa)
	}
}

// encode rounds |v| to a whole number of the last place at its exponent, then writes the fields down.
func (f format) encode(v float64) uint16 {
	if v != v {
		return f.nan
	}
	sign, a := uint16(0), math.Abs(v)
	if math.Signbit(v) {
		sign = 0x8000
	}
	inf := sign | uint16(f.exponentMask()<<f.mantissa)
	if math.IsInf(a, 0) {
		return inf
	}
	e := 1 - f.bias
	if a > 0 {
		e = max(e, math.Ilogb(a))
	}
	places := int(math.RoundToEven(math.Ldexp(a, f.mantissa-e)))
	// A carry into the next exponent, and from subnormal to normal, is the same addition.
	bits := places + (e+f.bias-1)<<f.mantissa
	if bits >= int(inf&0x7fff) {
		return inf
	}
	return sign | uint16(bits)
}

func TestHalvesWidenExactlyForEveryBitPattern(t *testing.T) {
	for _, f := range formats() {
		for i := range 1 << 16 {
			h := uint16(i)
			want, got := f.decode(h), float64(f.from(h))
			if want != want {
				require.True(t, got != got, "%s %04x is NaN, widened to %v", f.name, h, got)
				require.Equal(t, f.nan, f.to(f.from(h)), "%s %04x: NaN is canonical on the way back", f.name, h)
				continue
			}
			require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%s %04x", f.name, h)
			require.Equal(t, h, f.to(f.from(h)), "%s %04x: round trip", f.name, h)
		}
	}
}

// Between any two neighbours the midpoint and the numbers beside it are where rounding can go wrong.
func TestHalvesRoundToNearestEvenAroundEveryMidpoint(t *testing.T) {
	for _, f := range formats() {
		for i := range 0x7fff {
			low, high := f.decode(uint16(i)), f.decode(uint16(i+1))
			if high != high || math.IsInf(low, 0) {
				continue
			}
			if math.IsInf(high, 0) { // the number that would follow the largest
				high = low + (low - f.decode(uint16(i-1)))
			}
			mid := float32((low + high) / 2)
			for _, v := range []float32{float32(low), math.Nextafter32(float32(low), math.MaxFloat32),
				math.Nextafter32(mid, 0), mid, math.Nextafter32(mid, math.MaxFloat32)} {
				for _, v := range []float32{v, -v} {
					if want, got := f.encode(float64(v)), f.to(v); want != got {
						require.Equal(t, want, got, "%s of %v (%08x)", f.name, v, math.Float32bits(v))
					}
				}
			}
		}
	}
}

func TestHalvesRoundAsTheOracleOverAllExponents(t *testing.T) {
	const prime = 104729
	for _, f := range formats() {
		for bits := uint64(0); bits < 1<<32; bits += prime {
			v := math.Float32frombits(uint32(bits))
			if want, got := f.encode(float64(v)), f.to(v); want != got {
				require.Equal(t, want, got, "%s of %08x", f.name, bits)
			}
		}
	}
}

func TestHalfGoldenValues(t *testing.T) {
	for _, c := range []struct {
		v         float32
		f16, bf16 uint16
	}{
		{0, 0x0000, 0x0000}, {float32(math.Copysign(0, -1)), 0x8000, 0x8000}, {1, 0x3c00, 0x3f80}, {-2, 0xc000, 0xc000},
		{65504, 0x7bff, 0x4780}, {65519, 0x7bff, 0x4780}, {65520, 0x7c00, 0x4780}, {0x1p-24, 0x0001, 0x3380},
		{0x1p-25, 0x0000, 0x3300}, {0x1.8p-25, 0x0001, 0x3340}, {0x1p-14, 0x0400, 0x3880}, {1.0 / 3, 0x3555, 0x3eab},
		{math.MaxFloat32, 0x7c00, 0x7f80}, {math.SmallestNonzeroFloat32, 0x0000, 0x0000}, {0x1p-133, 0x0000, 0x0001},
		{float32(math.Inf(-1)), 0xfc00, 0xff80}, {float32(math.NaN()), 0x7e00, 0x7fc0},
	} {
		assert.Equal(t, c.f16, toF16(c.v), "f16 of %v", c.v)
		assert.Equal(t, c.bf16, toBF16(c.v), "bf16 of %v", c.v)
	}
}
