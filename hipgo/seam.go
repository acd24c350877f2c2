package hipgo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// Seam is a device in raw handles and built-in types, for code that must not import this package: what fabric/stage calls
// Driver and Launcher. It is safe for concurrent use. What it gave it takes back, and nothing else.
type Seam struct {
	d       *Device
	host    ledger[*byte, []byte]
	memory  ledger[uintptr, int]
	streams ledger[uintptr, uintptr] // and the event of each
	events  ledger[uintptr, struct{}]
	modules ledger[uintptr, unsafe.Pointer]
	met     acquaintance
}

// Seam gives the device so, with books of its own.
func (d *Device) Seam() *Seam { return &Seam{d: d} }

// ledger knows what was given out.
type ledger[K comparable, V any] struct {
	mu    sync.Mutex
	given map[K]V
}

func (l *ledger[K, V]) give(k K, v V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given == nil {
		l.given = map[K]V{}
	}
	l.given[k] = v
}

// take strikes k out, and puts it back where back fails.
func (l *ledger[K, V]) take(k K, back func(V) error) (ours bool, err error) {
	l.mu.Lock()
	v, ours := l.given[k]
	delete(l.given, k)
	l.mu.Unlock()
	if !ours {
		return false, nil
	}
	if err = back(v); err != nil {
		l.give(k, v)
	}
	return true, err
}

// String is the device's.
func (s *Seam) String() string { return s.d.String() }

// Integrated is the device's.
func (s *Seam) Integrated() bool { return s.d.integrated }

// Clock is the rate of the clock that a kernel reads, in kHz; 0 where the runtime does not say.
func (s *Seam) Clock() int {
	kHz, err := s.d.Attribute(AttributeWallClockRate)
	if err != nil {
		return 0 // an old runtime does not know the question
	}
	return kHz
}

// AllocHost gives zeroed, pinned, mapped, coherent memory and its address for the device, worth until FreeHost.
func (s *Seam) AllocHost(bytes int) (mem []byte, device uintptr, err error) {
	mem, device, err = s.d.hostMalloc(bytes)
	if err != nil {
		return nil, 0, err
	}
	s.host.give(unsafe.SliceData(mem), mem)
	return mem, device, nil
}

// FreeHost takes back what AllocHost gave.
func (s *Seam) FreeHost(mem []byte) error {
	ours, err := s.host.take(unsafe.SliceData(mem), func(whole []byte) error {
		return s.d.rt.check("hipHostFree", s.d.rt.t.HostFree(s.d.ordinal, whole))
	})
	if !ours {
		return invalid("%d bytes at %p: not from AllocHost, or freed already", len(mem), unsafe.SliceData(mem))
	}
	return err
}

// Inspect fails, saying what p is, unless [p, p+bytes) lies in one live allocation that this device can reach. host tells
// pinned host memory from device memory. No bytes lie anywhere.
func (s *Seam) Inspect(p uintptr, bytes int) (host bool, err error) { return s.d.inspect(p, bytes) }

// OpenStream gives a stream and an event for it. private: a hardware queue of its own, which no parked stream can hold up.
// eventOnly: an event alone, for Record on any stream of the device, and stream 0.
func (s *Seam) OpenStream(eventOnly bool) (stream, event uintptr, private bool, err error) {
	if eventOnly {
		mark, err := s.d.NewEvent(EventDisableTiming)
		if err == nil {
			s.events.give(mark.raw, struct{}{})
		}
		return 0, mark.raw, false, err
	}
	made, err := s.d.NewStreamCUMask(nil)
	private = err == nil
	if errors.Is(err, errors.ErrUnsupported) {
		made, err = s.d.NewStream(StreamNonBlocking)
	}
	if err != nil {
		return 0, 0, false, err
	}
	mark, err := s.d.NewEvent(EventDisableTiming)
	if err != nil {
		return 0, 0, false, errors.Join(err, made.Close())
	}
	s.streams.give(made.raw, mark.raw)
	return made.raw, mark.raw, private, nil
}

// CloseStream takes back what OpenStream gave, waiting inside HIP until the stream has run dry.
func (s *Seam) CloseStream(stream, event uintptr) error {
	t, at := s.d.rt.t, s.d.ordinal
	if stream == 0 {
		ours, err := s.events.take(event, func(struct{}) error { return s.d.rt.check("hipEventDestroy", t.EventDestroy(at, event)) })
		if !ours {
			return invalid("event %#x: not from OpenStream, or closed already", event)
		}
		return err
	}
	ours, err := s.streams.take(stream, func(its uintptr) error {
		if its != event {
			return invalid("event %#x is not stream %#x's", event, stream)
		}
		return s.d.rt.check("hipStreamDestroy", t.StreamDestroy(at, stream))
	})
	if !ours {
		return invalid("stream %#x: not from OpenStream, or closed already", stream)
	}
	if err != nil {
		return err
	}
	return s.d.rt.check("hipEventDestroy", t.EventDestroy(at, event))
}

// Copy queues a copy in any direction.
func (s *Seam) Copy(stream, dst, src uintptr, bytes int) error {
	if bytes < 0 {
		return invalid("a copy of %d bytes", bytes)
	}
	return s.d.rt.check("hipMemcpyAsync", s.d.rt.t.Copy(s.d.ordinal, stream, dst, src, bytes, int(CopyDefault)))
}

// Record puts the event at the stream's end.
func (s *Seam) Record(stream, event uintptr) error {
	return s.d.rt.check("hipEventRecord", s.d.rt.t.EventRecord(s.d.ordinal, event, stream))
}

// Query says whether the device has reached the event's last Record.
func (s *Seam) Query(event uintptr) (bool, error) {
	return s.d.ready("hipEventQuery", s.d.rt.t.EventQuery(s.d.ordinal, event))
}

// WriteWait queues a write of r at ready, then a wait until the word at done, as an unsigned number, is at least d; nothing on a
// stream that captures. A stream of another device is refused.
func (s *Seam) WriteWait(stream, ready uintptr, r uint64, done uintptr, d uint64) (captures bool, err error) {
	if s.met.last.Load() != stream {
		if err := s.meet(stream); err != nil {
			return false, err
		}
	}
	captures, err = s.d.writeWait(stream, ready, r, done, d, true)
	if err != nil {
		s.forget(stream)
	}
	return captures, err
}

// Capturing says whether the stream is being captured, or was and is invalidated.
func (s *Seam) Capturing(stream uintptr) (bool, error) {
	status, code := s.d.rt.t.StreamCapturing(s.d.ordinal, stream)
	return CaptureStatus(status) != CaptureNone, s.d.rt.check("hipStreamIsCapturing", code)
}

// Load loads a code object, or a bundle of them, and finds its functions. The image is copied.
func (s *Seam) Load(image []byte, names ...string) (module uintptr, functions []uintptr, err error) {
	module, kept, err := s.d.load(image)
	if err != nil {
		return 0, nil, err
	}
	for _, name := range names {
		f, err := s.d.function(module, name)
		if err != nil {
			return 0, nil, errors.Join(err, s.d.rt.check("hipModuleUnload", s.d.rt.t.ModuleUnload(s.d.ordinal, module, kept)))
		}
		functions = append(functions, f)
	}
	s.modules.give(module, kept)
	return module, functions, nil
}

// Unload takes back what Load gave.
func (s *Seam) Unload(module uintptr) error {
	ours, err := s.modules.take(module, func(kept unsafe.Pointer) error {
		return s.d.rt.check("hipModuleUnload", s.d.rt.t.ModuleUnload(s.d.ordinal, module, kept))
	})
	if !ours {
		return invalid("module %#x: not from Load, or unloaded already", module)
	}
	return err
}

// Launch queues a kernel that takes one struct by value. args is copied.
func (s *Seam) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	if blocks < 1 || threads < 1 || blocks > 1<<31-1 || threads > 1<<16 {
		return invalid("a launch of %d blocks of %d threads", blocks, threads)
	}
	if len(args) > MaxArgumentBytes {
		return invalid("%d bytes of arguments; at most %d", len(args), MaxArgumentBytes)
	}
	dims := driver.Dims{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}}
	sizes := [1]uint32{uint32(len(args))}
	return s.d.launch(stream, function, dims, args, sizes[:])
}

// zeroWithin bounds the wait for fresh memory to be zero: it has a queue of its own wherever there is one.
const zeroWithin = 10 * time.Second

// AllocDevice gives zeroed device memory. It waits for the device.
func (s *Seam) AllocDevice(bytes int) (uintptr, error) {
	b, err := s.d.Malloc(bytes)
	if err != nil {
		return 0, err
	}
	if err := s.zero(b); err != nil {
		return 0, err
	}
	s.memory.give(b.ptr, bytes)
	return b.ptr, nil
}

func (s *Seam) zero(b *Buffer) error {
	raw, event, _, err := s.OpenStream(false)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	stream := s.d.WrapStream(raw)
	err = stream.Memset(b.ptr, 0, b.n)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), zeroWithin)
		defer cancel()
		if err = stream.Synchronize(ctx); errors.Is(err, context.DeadlineExceeded) {
			// The device may yet write here: neither memory nor stream can be given back.
			return fmt.Errorf("hipgo: %d bytes of device memory were not zeroed within %v: is a parked stream in the way? %s", b.n, zeroWithin, s)
		}
	}
	err = errors.Join(err, s.CloseStream(raw, event))
	if err != nil {
		return errors.Join(err, b.Close())
	}
	return nil
}

// FreeDevice takes back what AllocDevice gave.
func (s *Seam) FreeDevice(p uintptr) error {
	ours, err := s.memory.take(p, func(int) error {
		return s.d.rt.check("hipFree", s.d.rt.t.Free(s.d.ordinal, p))
	})
	if !ours {
		return invalid("device memory at %#x: not from AllocDevice, or freed already", p)
	}
	return err
}
