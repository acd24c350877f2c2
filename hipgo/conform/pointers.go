package conform

import (
	"fmt"

	"github.com/hipfabric/hipfabric/hipgo"
)

type (
	pinned   = *hipgo.HostBuffer
	onDevice = *hipgo.Buffer
)

func pointerDevice(p *probe) (string, error) {
	const n = 8192
	b, err := p.deviceBytes(n)
	if err != nil {
		return "", err
	}
	return p.inspect(b.Ptr(), n, hipgo.MemoryDevice)
}

func pointerHost(p *probe) (string, error) {
	const n = 8192
	b, err := p.hostBytes(n)
	if err != nil {
		return "", err
	}
	return p.inspect(b.Ptr(), n, hipgo.MemoryHost)
}

// inspect asks about the first byte, one within and the last of an allocation.
func (p *probe) inspect(base uintptr, n int, kind hipgo.MemoryKind) (string, error) {
	sized := true
	for _, at := range []int{0, 100, n - 1} {
		got, err := p.d.Runtime().Pointer(base + uintptr(at))
		if err != nil {
			return "", fmt.Errorf("byte %d of %d: %w", at, n, err)
		}
		switch {
		case got.Kind != kind:
			return "", fmt.Errorf("byte %d of %d is said to be %v, not %v", at, n, got.Kind, kind)
		case got.Device != p.d.Ordinal():
			return "", fmt.Errorf("byte %d of %d is said to be device %d's, not %d's", at, n, got.Device, p.d.Ordinal())
		case got.Size == 0:
			sized = false
		case got.Base > base || got.Base+uintptr(got.Size) < base+uintptr(n):
			return "", fmt.Errorf("byte %d of [%#x, +%d) is said to lie in [%#x, +%d)", at, base, n, got.Base, got.Size)
		}
	}
	if !sized {
		return fmt.Sprintf("%v is told from other memory; the runtime does not say how large an allocation is", kind), nil
	}
	return fmt.Sprintf("%v and its bounds are known from any address within", kind), nil
}

// pointerForeign: memory that the runtime does not know is not taken for memory that it does; nor is freed memory.
func pointerForeign(p *probe) (string, error) {
	b, err := p.d.Malloc(8192)
	if err != nil {
		return "", err
	}
	freed := b.Ptr()
	if err := b.Close(); err != nil {
		return "", err
	}
	if got, err := p.d.Runtime().Pointer(freed); err == nil && got.Kind == hipgo.MemoryDevice {
		return "", fmt.Errorf("freed device memory at %#x still counts as device memory", freed)
	}
	heap := make([]byte, 64)
	got, err := p.d.Runtime().Pointer(address(heap))
	if err != nil {
		return "", err
	}
	if got.Kind == hipgo.MemoryDevice || got.Kind == hipgo.MemoryHost {
		return "", fmt.Errorf("ordinary memory counts as %v", got.Kind)
	}
	return fmt.Sprintf("ordinary memory is said to be %v; freed device memory is no longer known", got.Kind), nil
}
