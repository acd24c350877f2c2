package measure

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/hipfabric/hipfabric/fabric"
)

// input fills b with what rank contributes in a round: the same bytes wherever they are made. Even rounds are any bits,
// so NaN, infinities and subnormals too; odd ones are numbers of ordinary size.
func input(b []byte, seed uint64, rank, round int, dt fabric.DType) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(rank))
	binary.LittleEndian.PutUint64(key[16:], uint64(round))
	_, _ = rand.NewChaCha8(key).Read(b)
	if round%2 == 1 {
		ordinary(b, dt)
	}
}

// ordinary keeps a float's sign and mantissa and gives it an exponent between 2^-3 and 2.
func ordinary(b []byte, dt fabric.DType) {
	var clear, set uint16 // in the two highest bytes
	switch dt {
	case fabric.F16:
		clear, set = 0x7000, 0x3000
	case fabric.BF16, fabric.F32:
		clear, set = 0x7e00, 0x3e00
	case fabric.F64:
		clear, set = 0x7fe0, 0x3fe0
	default:
		return
	}
	for size := dt.Size(); len(b) >= size; b = b[size:] {
		high := b[size-2:]
		binary.LittleEndian.PutUint16(high, binary.LittleEndian.Uint16(high)&^clear|set)
	}
}

// poison marks what a call has yet to write.
const poison = 0xa5

func fill(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
