package hipgo

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Buffer is device memory.
type Buffer struct {
	d      *Device
	ptr    uintptr
	n      int
	owned  bool
	closed atomic.Bool
}

// Malloc gives n bytes of device memory, with whatever they held. It may wait for the device.
//
// Implements: hipError_t hipMalloc(void **ptr, size_t size)
func (d *Device) Malloc(n int) (*Buffer, error) {
	if n <= 0 {
		return nil, invalid("device memory of %d bytes: at least 1", n)
	}
	p, code := d.rt.t.Malloc(d.ordinal, n)
	if code != 0 {
		return nil, fmt.Errorf("hipgo: %d bytes on device %d (%s): %w", n, d.ordinal, d.pci, d.rt.fail("hipMalloc", code))
	}
	return &Buffer{d: d, ptr: p, n: n, owned: true}, nil
}

// WrapBuffer views n bytes of device memory that somebody else owns: its Close frees nothing.
func (d *Device) WrapBuffer(raw uintptr, n int) *Buffer { return &Buffer{d: d, ptr: raw, n: n} }

// Ptr is the address for the device; 0 after Close, which every call refuses. The CPU must not touch it, not even where the
// device is integrated.
func (b *Buffer) Ptr() uintptr {
	if b.closed.Load() {
		return 0
	}
	return b.ptr
}

// Len is in bytes.
func (b *Buffer) Len() int { return b.n }

// Device is the one whose memory it is.
func (b *Buffer) Device() *Device { return b.d }

// Close frees the memory: not before the device has done what was queued with it, for which HIP may wait as long as a stream
// is parked. A second Close does nothing.
//
// Implements: hipError_t hipFree(void *ptr)
func (b *Buffer) Close() error {
	if b.closed.Swap(true) || !b.owned {
		return nil
	}
	code := b.d.rt.t.Free(b.d.ordinal, b.ptr)
	if code != 0 {
		b.closed.Store(false)
	}
	return b.d.rt.check("hipFree", code)
}

// HostBuffer is pinned host memory, mapped for the device and coherent: what one side stores the other sees.
type HostBuffer struct {
	d      *Device
	mem    []byte
	ptr    uintptr
	closed atomic.Bool
}

// HostMalloc gives n zeroed bytes of pinned memory, which start at a page.
//
// Implements: hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags), hipHostGetDevicePointer
func (d *Device) HostMalloc(n int) (*HostBuffer, error) {
	mem, ptr, err := d.hostMalloc(n)
	if err != nil {
		return nil, err
	}
	return &HostBuffer{d: d, mem: mem, ptr: ptr}, nil
}

func (d *Device) hostMalloc(n int) ([]byte, uintptr, error) {
	if n <= 0 {
		return nil, 0, invalid("pinned memory of %d bytes: at least 1", n)
	}
	mem, ptr, code := d.rt.t.HostMalloc(d.ordinal, n)
	if code != 0 {
		return nil, 0, fmt.Errorf("hipgo: %d pinned bytes for device %d (%s): %w", n, d.ordinal, d.pci, d.rt.fail("hipHostMalloc", code))
	}
	clear(mem)
	return mem, ptr, nil
}

// Bytes is the memory for the CPU, worth until Close: a use of it after that faults. None after Close.
func (h *HostBuffer) Bytes() []byte {
	if h.closed.Load() {
		return nil
	}
	return h.mem
}

// Ptr is the memory's address for the device; 0 after Close.
func (h *HostBuffer) Ptr() uintptr {
	if h.closed.Load() {
		return 0
	}
	return h.ptr
}

// Len is in bytes.
func (h *HostBuffer) Len() int { return len(h.mem) }

// Words views the memory as 64-bit words, without a tail of less than one. They are worth until Close; none after it.
func (h *HostBuffer) Words() Words {
	b := h.Bytes()
	if len(b) < 8 {
		return Words{}
	}
	return Words{unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8), h.ptr}
}

// Close frees the memory, as Buffer.Close.
//
// Implements: hipError_t hipHostFree(void *ptr)
func (h *HostBuffer) Close() error {
	if h.closed.Swap(true) {
		return nil
	}
	code := h.d.rt.t.HostFree(h.d.ordinal, h.mem)
	if code != 0 {
		h.closed.Store(false)
	}
	return h.d.rt.check("hipHostFree", code)
}

// Words are 64-bit cells that CPU and device share. As with a slice, an index out of range panics.
type Words struct {
	w   []uint64
	ptr uintptr
}

// Load reads word i with acquire: what the device wrote before it stored the word is seen.
func (w Words) Load(i int) uint64 { return atomic.LoadUint64(&w.w[i]) }

// Store writes word i with release, which frees a stream that waits on it.
func (w Words) Store(i int, v uint64) { atomic.StoreUint64(&w.w[i], v) }

// Addr is word i's address for the device.
func (w Words) Addr(i int) uintptr { _ = w.w[i]; return w.ptr + uintptr(i)*8 }

// Len is the number of words.
func (w Words) Len() int { return len(w.w) }
