package reduce

import (
	"encoding/binary"
	"math"

	"github.com/hipfabric/hipfabric/fabric"
)

var order = binary.LittleEndian

// The canonical NaNs, which every NaN becomes.
const (
	nanF16  = 0x7e00
	nanBF16 = 0x7fc0
	nanF32  = 0x7fc00000
	nanF64  = 0x7ff8000000000000
)

func loadFloat32(dst []float32, src []byte, dt fabric.DType) {
	switch dt {
	case fabric.F16:
		for i := range dst {
			dst[i] = fromF16(order.Uint16(src[2*i:]))
		}
	case fabric.BF16:
		for i := range dst {
			dst[i] = fromBF16(order.Uint16(src[2*i:]))
		}
	default:
		for i := range dst {
			dst[i] = math.Float32frombits(order.Uint32(src[4*i:]))
		}
	}
}

func storeFloat32(dst []byte, src []float32, dt fabric.DType) {
	switch dt {
	case fabric.F16:
		for i, v := range src {
			order.PutUint16(dst[2*i:], toF16(v))
		}
	case fabric.BF16:
		for i, v := range src {
			order.PutUint16(dst[2*i:], toBF16(v))
		}
	default:
		for i, v := range src {
			bits := math.Float32bits(v)
			if v != v {
				bits = nanF32
			}
			order.PutUint32(dst[4*i:], bits)
		}
	}
}

func loadF64(dst []float64, src []byte) {
	for i := range dst {
		dst[i] = math.Float64frombits(order.Uint64(src[8*i:]))
	}
}

func storeF64(dst []byte, src []float64) {
	for i, v := range src {
		bits := math.Float64bits(v)
		if v != v {
			bits = nanF64
		}
		order.PutUint64(dst[8*i:], bits)
	}
}

func loadInt(dst []int64, src []byte, dt fabric.DType) {
	switch dt {
	case fabric.U8:
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case fabric.I8:
		for i := range dst {
			dst[i] = int64(int8(src[i]))
		}
	case fabric.I32:
		for i := range dst {
			dst[i] = int64(int32(order.Uint32(src[4*i:])))
		}
	default:
		for i := range dst {
			dst[i] = int64(order.Uint64(src[8*i:]))
		}
	}
}

func storeInt(dst []byte, src []int64, dt fabric.DType) {
	switch dt {
	case fabric.U8, fabric.I8:
		for i, v := range src {
			dst[i] = byte(v)
		}
	case fabric.I32:
		for i, v := range src {
			order.PutUint32(dst[4*i:], uint32(v))
		}
	default:
		for i, v := range src {
			order.PutUint64(dst[8*i:], uint64(v))
		}
	}
}
