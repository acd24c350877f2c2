package fabric

import "unsafe"

// Number is a fixed-size number that Bytes can view. Use ~uint16 for f16 and bf16.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// Bytes views a slice of numbers as its bytes, in the machine's order. Both share memory: nothing is copied, and the
// view is worth as long as s is.
func Bytes[T Number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// Words views bytes as 64-bit words in the machine's order: for memory that a device reads and writes too, whose words
// are loaded and stored by sync/atomic on &words[i]. Both share memory, and the view is worth as long as b is: of memory
// that is not Go's, until it is freed. ErrInvalid unless b begins at a multiple of 8 and is as long as one; no bytes are
// no words.
func Words(b []byte) ([]uint64, error) {
	switch {
	case len(b)%8 != 0:
		return nil, Invalidf("%d bytes are no whole number of 64-bit words: a multiple of 8 is needed", len(b))
	case len(b) == 0:
		return nil, nil
	case start(b)%8 != 0:
		return nil, Invalidf("bytes at %#x are no 64-bit words: an address that is a multiple of 8 is needed", start(b))
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8), nil
}

// Memory is what Alloc gives: bytes that a path moves in place. The slice is worth until Close.
type Memory interface {
	Bytes() []byte
	Close() error
}

func start(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
