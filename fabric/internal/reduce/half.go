package reduce

import "math"

// fromF16 widens IEEE binary16, exactly.
func fromF16(h uint16) float32 {
	sign, mag := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case mag >= 0x7c00: // infinity, NaN
		return math.Float32frombits(sign | 0x7f800000 | (mag&0x3ff)<<13)
	case mag >= 0x0400:
		return math.Float32frombits(sign | (mag<<13 + (127-15)<<23))
	default: // subnormal: a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(mag)*0x1p-24))
	}
}

// toF16 rounds to nearest even; what rounds past the largest finite number becomes infinity.
func toF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, mag := uint16(bits>>16)&0x8000, bits&0x7fffffff
	switch {
	case mag > 0x7f800000:
		return nanF16
	case mag >= 0x477ff000: // 65520, half way from 65504 to 65536
		return sign | 0x7c00
	case mag >= 0x38800000: // 2^-14, the smallest normal
		mag -= (127 - 15) << 23
		return sign | uint16((mag+0xfff+mag>>13&1)>>13)
	default:
		// The last bit of numbers from 0.5 to 1 is 2^-24, that of a subnormal binary16: the sum rounds as needed.
		return sign | uint16(math.Float32bits(math.Float32frombits(mag)+0.5)-math.Float32bits(0.5))
	}
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// toBF16 rounds to nearest even.
func toBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return nanBF16
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
