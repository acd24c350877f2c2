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
	clear, set := [2]byte{}, [2]byte{} // of the two highest bytes, little-endian
	switch dt {
	case fabric.F16:
		clear, set = [2]byte{0x00, 0x70}, [2]byte{0x00, 0x30}
	case fabric.BF16, fabric.F32:
		clear, set = [2]byte{0x00, 0x7e}, [2]byte{0x00, 0x3e}
	case fabric.F64:
		clear, set = [2]byte{0x00, 0x7f}, [2]byte{0x00, 0x3f}
		set[0], clear[0] = 0xc0, 0xc0
	default:
		return
	}
	for size := dt.Size(); len(b) >= size; b = b[size:] {
		for i := range 2 {
			at := size - 2 + i
			b[at] = b[at]&^clear[i] | set[i]
		}
	}
}

// poison marks what a call has yet to write.
const poison = 0xa5

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}
