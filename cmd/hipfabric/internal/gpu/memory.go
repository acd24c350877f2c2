package gpu

import (
	"context"
	"errors"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo"
)

// bounceBytes is the pinned memory through which bytes reach device memory and come back.
const bounceBytes = 1 << 20

// Memory moves bytes between Go's memory and a device's. One goroutine at a time.
type Memory struct {
	device *hipgo.Device
	stream hipgo.Stream
	bounce *hipgo.HostBuffer
	taken  map[fabric.DevPtr]*hipgo.Buffer
}

// NewMemory makes a stream of its own, and a pinned buffer.
func NewMemory(d *hipgo.Device) (*Memory, error) {
	stream, err := d.NewStream(hipgo.StreamNonBlocking)
	if err != nil {
		return nil, Kind(err)
	}
	bounce, err := d.HostMalloc(bounceBytes)
	if err != nil {
		return nil, Kind(errors.Join(err, stream.Close()))
	}
	return &Memory{device: d, stream: stream, bounce: bounce, taken: map[fabric.DevPtr]*hipgo.Buffer{}}, nil
}

// Alloc gives device memory.
func (m *Memory) Alloc(n int) (fabric.DevPtr, error) {
	b, err := m.device.Malloc(n)
	if err != nil {
		return 0, Kind(err)
	}
	p := fabric.DevPtr(b.Ptr())
	m.taken[p] = b
	return p, nil
}

// Free gives back what Alloc gave.
func (m *Memory) Free(p fabric.DevPtr) error {
	b := m.taken[p]
	if b == nil {
		return fabric.Invalidf("free of %#x, which Alloc has not given", uintptr(p))
	}
	delete(m.taken, p)
	return Kind(b.Close())
}

// Upload returns once the bytes are there.
func (m *Memory) Upload(to fabric.DevPtr, from []byte) error {
	for len(from) > 0 {
		n := copy(m.bounce.Bytes(), from)
		if err := m.move(uintptr(to), m.bounce.Ptr(), n, hipgo.CopyHostToDevice); err != nil {
			return err
		}
		from, to = from[n:], to+fabric.DevPtr(n)
	}
	return nil
}

// Download returns once the bytes are here.
func (m *Memory) Download(to []byte, from fabric.DevPtr) error {
	for len(to) > 0 {
		n := min(len(to), bounceBytes)
		if err := m.move(m.bounce.Ptr(), uintptr(from), n, hipgo.CopyDeviceToHost); err != nil {
			return err
		}
		copy(to[:n], m.bounce.Bytes())
		to, from = to[n:], from+fabric.DevPtr(n)
	}
	return nil
}

func (m *Memory) move(to, from uintptr, n int, kind hipgo.CopyKind) error {
	if err := m.stream.Copy(to, from, n, kind); err != nil {
		return Kind(err)
	}
	return Kind(m.stream.Synchronize(context.Background()))
}

// Close frees all of it.
func (m *Memory) Close() error {
	var errs []error
	for p := range m.taken {
		errs = append(errs, m.Free(p))
	}
	return Kind(errors.Join(append(errs, m.bounce.Close(), m.stream.Close())...))
}
