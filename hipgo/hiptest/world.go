package hiptest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
	"github.com/hipfabric/hipfabric/hipgo/internal/driver/soft"
)

// World is the process's software device, or devices. Its methods are safe for concurrent use, but Close ends the device
// under whoever still uses it.
type World struct {
	runtime *hipgo.Runtime
	devices []*hipgo.Device
	closed  chan struct{}
}

// New makes the software device of this process. Close it. Errors: wrong settings; a World that is still open; a build
// without cgo or not for Linux, which is errors.ErrUnsupported.
func New(s Settings) (*World, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	t, err := soft.Open(s.String())
	if errors.Is(err, driver.ErrBuild) {
		return nil, fmt.Errorf("hiptest: %w: %w", err, errors.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("hiptest: %w", err)
	}
	w := &World{closed: make(chan struct{}, 1)}
	if w.runtime, err = hipgo.OpenTable(t); err == nil && s.NoGPU == 0 {
		w.devices, err = w.runtime.Devices()
	}
	if err != nil {
		soft.Close()
		return nil, fmt.Errorf("hiptest: %w", err)
	}
	return w, nil
}

// Start is New for a test: it fails t on an error, and when t ends closes the World and fails t on leaks and misuse.
func Start(t testing.TB, s Settings) *World {
	t.Helper()
	w, err := New(s)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if leaks := w.Leaks(); leaks != "" && !t.Failed() {
			t.Errorf("the software device still has:\n%s", leaks)
		}
		if reports := w.Reports(); reports != "" && !t.Failed() {
			t.Errorf("the software device was misused:\n%s", reports)
		}
		_ = w.Close()
	})
	return w
}

// Runtime is a runtime like any other.
func (w *World) Runtime() *hipgo.Runtime { return w.runtime }

// Device is a device of this World, nil where there is none of that number.
func (w *World) Device(i int) *hipgo.Device {
	if i < 0 || i >= len(w.devices) {
		return nil
	}
	return w.devices[i]
}

// Close ends the device: what is parked is dropped, memory is unmapped, threads end. A second Close does nothing.
func (w *World) Close() error {
	select {
	case w.closed <- struct{}{}:
		soft.Close()
	default:
	}
	return nil
}

// Queue is a hardware queue or an SDMA ring.
type Queue struct{ id int }

// Queue is the hardware queue behind a stream.
func (w *World) Queue(s hipgo.Stream) Queue { return Queue{soft.Queue(s.Raw())} }

// Ring is an SDMA ring of a device: 0 brings to the device, 1 from it, with two of them.
func (w *World) Ring(device, index int) Queue { return Queue{soft.Ring(device, index)} }

// Number tells queues apart, as Op.Queue does.
func (q Queue) Number() int { return q.id }

// Hold lets the operation under way end and no further one begin.
func (q Queue) Hold() error { return soft.Do("hold", q.id, 0) }

// Step lets n operations of a held queue begin.
func (q Queue) Step(n int) error { return soft.Do("step", q.id, n) }

// Release ends Hold.
func (q Queue) Release() error { return soft.Do("release", q.id, 0) }

// Hang makes the queue's next operation never end, until the World is closed or the device lost.
func (q Queue) Hang() error { return soft.Fault(fmt.Sprintf("queue=%d hang=1", q.id)) }

// Settle returns once no queue can go on by itself: each is empty, held, or waits. It fails after a bound.
func (w *World) Settle(bound time.Duration) error {
	return soft.Do("settle", 0, int(bound/time.Millisecond))
}

// Parked describes each queue that has work: what it does, what for it waits, how much stands behind it. "" when all are
// empty.
func (w *World) Parked() string { return soft.Parked() }

// Leaks lists what is allocated, created or registered and was not given back.
func (w *World) Leaks() string { return soft.Leaks() }

// Reports lists misuse: memory freed under an operation, freed twice, named after it was freed.
func (w *World) Reports() string { return soft.Reports() }

// Op is an operation that a queue has finished.
type Op struct {
	Name    string // of the call without "hip", or of the kernel
	Device  int
	Queue   int // Queue.Number
	Ring    bool
	Stream  uintptr // 0: the null stream
	Address uintptr // what it wrote, or waited on
	Bytes   int
	Value   uint64
	Code    int // 0, or how it failed

	Queued, Start, End time.Duration // of the system's monotonic clock
}

// Trace gives up to 8,192 operations, the newest, in the order in which they ended.
func (w *World) Trace() []Op {
	from := soft.Trace()
	to := make([]Op, len(from))
	for i, o := range from {
		to[i] = Op{
			Name: o.Name, Device: o.Device, Queue: o.Queue, Ring: o.Ring, Stream: uintptr(o.Stream),
			Address: uintptr(o.Address), Bytes: int(o.Bytes), Value: o.Value, Code: o.Code,
			Queued: time.Duration(o.Queued), Start: time.Duration(o.Start), End: time.Duration(o.End),
		}
	}
	return to
}
