package verbstest

import (
	"sync/atomic"
	"unsafe"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// pointer makes one of an address outside Go's heap, where nothing moves.
func pointer(addr uint64) unsafe.Pointer {
	p := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

func view(addr uint64, n int) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(addr)), n)
}

// gather calls for each stretch of the request's bytes from off on, with its place in the request.
func (s *send) gather(off, n int, each func(at int, from []byte)) {
	if s.data != nil {
		each(off, s.data[off:off+n])
		return
	}
	start := 0
	for _, e := range s.sge {
		from, to := max(off, start), min(off+n, start+int(e.Length))
		if from < to {
			each(from, view(e.Addr+uint64(from-start), to-from))
		}
		start += int(e.Length)
	}
}

// scatter fills entries in order.
func scatter(sge []driver.SGE, from []byte) {
	for _, e := range sge {
		n := min(len(from), int(e.Length))
		put(e.Addr, from[:n])
		from = from[n:]
	}
}

// put writes from low to high. The last word, where it is aligned, is stored with release: who loads it with acquire sees the rest.
func put(addr uint64, from []byte) {
	n := len(from)
	end := addr + uint64(n)
	switch {
	case n >= 8 && end%8 == 0:
		copy(view(addr, n-8), from)
		var word uint64
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&word)), 8), from[n-8:])
		atomic.StoreUint64((*uint64)(pointer(end-8)), word)
	case n >= 4 && end%4 == 0:
		copy(view(addr, n-4), from)
		var word uint32
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&word)), 4), from[n-4:])
		atomic.StoreUint32((*uint32)(pointer(end-4)), word)
	default:
		copy(view(addr, n), from)
	}
}
