package hipgo

import "fmt"

// MemoryKind is what an address is of, whatever the runtime's version numbers it.
type MemoryKind int

// The kinds of memory.
const (
	MemoryUnknown MemoryKind = iota // plain host memory, freed, or never allocated
	MemoryHost                      // pinned
	MemoryDevice
	MemoryManaged
	MemoryArray
	MemoryUnified
)

func (k MemoryKind) String() string {
	names := [...]string{"unknown memory", "pinned host memory", "device memory", "managed memory", "an array", "unified memory"}
	if k < 0 || int(k) >= len(names) {
		return names[0]
	}
	return names[k]
}

// kindOf reads hipMemoryType, which was numbered anew at HIP 6.0.
func kindOf(major, number int) MemoryKind {
	if major < 6 {
		number += oldTypes
	}
	switch number {
	case oldTypes, 1:
		return MemoryHost
	case oldTypes + 1, 2:
		return MemoryDevice
	case oldTypes + 4, 3:
		return MemoryManaged
	case oldTypes + 2, 10:
		return MemoryArray
	case oldTypes + 3, 11:
		return MemoryUnified
	}
	return MemoryUnknown
}

const oldTypes = 1000 // sets the numbers of HIP 5 apart

// Pointer is what the runtime knows of an address.
type Pointer struct {
	Kind      MemoryKind
	Device    int     // whose memory it is
	DevicePtr uintptr // the address for that device
	HostPtr   uintptr // for the CPU; 0 where there is none
	Base      uintptr // of the allocation; 0 where the runtime cannot tell
	Size      int     // bytes at Base; 0 with it
}

// Pointer asks the runtime what p is of. Memory that it does not know is MemoryUnknown and no error.
//
// Implements: hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr), hipMemGetAddressRange
func (r *Runtime) Pointer(p uintptr) (Pointer, error) { return r.pointer(0, p) }

func (r *Runtime) pointer(device int, p uintptr) (Pointer, error) {
	if p == 0 {
		return Pointer{}, nil
	}
	got, code := r.t.Pointer(device, p)
	if code == codeInvalidValue {
		return Pointer{}, nil
	}
	if err := r.check("hipPointerGetAttributes", code); err != nil {
		return Pointer{}, err
	}
	kind := kindOf(r.version.Major, got.Type)
	if kind == MemoryUnknown {
		return Pointer{}, nil
	}
	return Pointer{kind, got.Device, got.DevicePtr, got.HostPtr, got.Base, got.Size}, nil
}

// inspect is Seam.Inspect.
func (d *Device) inspect(p uintptr, n int) (host bool, err error) {
	if n < 0 {
		return false, invalid("%d bytes at %#x: a length is 0 or more", n, p)
	}
	if n == 0 {
		return false, nil
	}
	at, err := d.rt.pointer(d.ordinal, p)
	switch {
	case err != nil:
		return false, fmt.Errorf("hipgo: %#x: %w", p, err)
	case at.Kind == MemoryUnknown:
		return false, invalid("%#x is no memory that HIP knows: never allocated, freed, or plain host memory; %s", p, d)
	case at.Kind == MemoryArray:
		return false, invalid("%#x is of an array; a plain allocation is needed", p)
	case at.Kind != MemoryHost && at.Device != d.ordinal:
		return false, invalid("%#x is %s of device %d, and this is device %d; %s", p, at.Kind, at.Device, d.ordinal, d)
	}
	if at.Base != 0 {
		if left := at.Size - int(p-at.Base); n > left {
			return false, invalid("%d bytes at %#x: only %d are left of its allocation of %d at %#x", n, p, left, at.Size, at.Base)
		}
		return at.Kind == MemoryHost, nil
	}
	last, err := d.rt.pointer(d.ordinal, p+uintptr(n)-1)
	if err == nil && (last.Kind != at.Kind || last.Device != at.Device) {
		err = invalid("%d bytes at %#x: the last is %s, the first %s: it is past the end of its allocation", n, p, last.Kind, at.Kind)
	}
	return at.Kind == MemoryHost, err
}
