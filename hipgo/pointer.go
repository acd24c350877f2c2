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
	numbers := map[int]MemoryKind{1: MemoryHost, 2: MemoryDevice, 3: MemoryManaged, 10: MemoryArray, 11: MemoryUnified}
	if major < 6 {
		numbers = map[int]MemoryKind{0: MemoryHost, 1: MemoryDevice, 2: MemoryArray, 3: MemoryUnified, 4: MemoryManaged}
	}
	return numbers[number] // none: MemoryUnknown
}

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
	return Pointer{
		Kind: kindOf(r.version.Major, got.Type), Device: got.Device, DevicePtr: got.DevicePtr, HostPtr: got.HostPtr,
		Base: got.Base, Size: got.Size,
	}, nil
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
