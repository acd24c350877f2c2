package stage_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
)

// double is a device in Go: in-order streams, waits that park, memory by address.
type double struct {
	integrated, shared bool // CPU and device share memory; streams share a queue
	t                  testing.TB

	mu      sync.Mutex
	blocks  []*block
	streams map[uintptr]*line
	events  map[uintptr]*mark
	next    uintptr
	fault   func(method string, nth int) error // nil error: works
	before  func(method string, nth int)       // called outside mu
	calls   map[string]int
	lose    func(nth int) bool // copies that never end
	slow    time.Duration      // of every copy
}

type block struct {
	at   uintptr
	mem  []byte
	host bool
}

// mark is an event: the number of its last Record, and of the last one reached.
type mark struct{ recorded, reached atomic.Uint64 }

// line is a stream: operations that a goroutine runs in order.
type line struct {
	mu    sync.Mutex
	ops   []func()
	wake  chan struct{}
	ended chan struct{}
	idle  chan struct{} // closed when the goroutine has left
	late  chan struct{} // closed: lost copies land
}

type invalid string

func (e invalid) Error() string { return string(e) }
func (e invalid) Invalid() bool { return true }

func newDouble(t testing.TB) *double {
	d := &double{t: t, streams: map[uintptr]*line{}, events: map[uintptr]*mark{}, next: 16, calls: map[string]int{}}
	t.Cleanup(func() {
		d.mu.Lock()
		var left []*line
		for _, s := range d.streams {
			left = append(left, s)
		}
		d.mu.Unlock()
		for _, s := range left {
			s.end()
		}
	})
	return d
}

func (d *double) enter(method string) error {
	d.mu.Lock()
	d.calls[method]++
	nth, fault, before := d.calls[method], d.fault, d.before
	d.mu.Unlock()
	if before != nil {
		before(method, nth)
	}
	if fault != nil {
		return fault(method, nth)
	}
	return nil
}

func (d *double) String() string   { return "gfx0000 double at 0000:00:00.0" }
func (d *double) Integrated() bool { return d.integrated }

func (d *double) alloc(n int, host bool) *block {
	words := make([]uint64, (n+7)/8+1)
	b := &block{mem: fabric.Bytes(words)[:n:n], host: host}
	b.at = uintptr(unsafe.Pointer(unsafe.SliceData(words)))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocks = append(d.blocks, b)
	return b
}

func (d *double) release(at uintptr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.blocks)
	d.blocks = slices.DeleteFunc(d.blocks, func(b *block) bool { return b.at == at })
	if len(d.blocks) == n {
		return invalid(fmt.Sprintf("free of %#x, which is not allocated", at))
	}
	return nil
}

func (d *double) AllocHost(n int) ([]byte, uintptr, error) {
	if err := d.enter("AllocHost"); err != nil {
		return nil, 0, err
	}
	b := d.alloc(n, true)
	return b.mem, b.at, nil
}

func (d *double) FreeHost(mem []byte) error {
	if err := d.enter("FreeHost"); err != nil {
		return err
	}
	return d.release(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
}

// bytes finds memory by its address.
func (d *double) bytes(p uintptr, n int) (*block, []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.blocks {
		if p >= b.at && p-b.at <= uintptr(len(b.mem)) && n <= len(b.mem)-int(p-b.at) {
			return b, b.mem[p-b.at:][:n:n]
		}
	}
	return nil, nil
}

func (d *double) Inspect(p uintptr, n int) (bool, error) {
	if err := d.enter("Inspect"); err != nil {
		return false, err
	}
	b, _ := d.bytes(p, n)
	if b == nil {
		return false, invalid(fmt.Sprintf("%#x is no memory of ours with %d bytes", p, n))
	}
	return b.host, nil
}

func (d *double) stream() uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	s := &line{wake: make(chan struct{}, 1), ended: make(chan struct{}), idle: make(chan struct{}), late: make(chan struct{})}
	d.streams[d.next] = s
	go s.run()
	return d.next
}

func (d *double) OpenStream(eventOnly bool) (stream, event uintptr, private bool, err error) {
	if err := d.enter("OpenStream"); err != nil {
		return 0, 0, false, err
	}
	if !eventOnly {
		stream = d.stream()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	d.events[d.next] = &mark{}
	return stream, d.next, !d.shared, nil
}

func (d *double) CloseStream(stream, event uintptr) error {
	if err := d.enter("CloseStream"); err != nil {
		return err
	}
	if stream != 0 {
		s := d.line(stream)
		if s == nil {
			return invalid("no such stream")
		}
		s.end()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.streams, stream)
	delete(d.events, event)
	return nil
}

func (d *double) line(stream uintptr) *line {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.streams[stream]
}

func (d *double) Copy(stream, dst, src uintptr, n int) error {
	if err := d.enter("Copy"); err != nil {
		return err
	}
	d.mu.Lock()
	lost := d.lose != nil && d.lose(d.calls["Copy"])
	d.mu.Unlock()
	s := d.line(stream)
	s.put(func() {
		_, to := d.bytes(dst, n)
		_, from := d.bytes(src, n)
		if to == nil || from == nil {
			d.t.Errorf("a copy of %d bytes from %#x to %#x, which is freed or never was", n, src, dst)
			return
		}
		if d.slow > 0 {
			<-time.After(d.slow)
		}
		if lost {
			select {
			case <-s.late:
			case <-s.ended:
				return
			}
		}
		copy(to, from)
	})
	return nil
}

func (d *double) Record(stream, event uintptr) error {
	if err := d.enter("Record"); err != nil {
		return err
	}
	s := d.line(stream)
	if s == nil {
		return invalid("no such stream")
	}
	d.mu.Lock()
	m := d.events[event]
	d.mu.Unlock()
	n := m.recorded.Add(1)
	s.put(func() { m.reached.Store(n) })
	return nil
}

func (d *double) Query(event uintptr) (bool, error) {
	if err := d.enter("Query"); err != nil {
		return false, err
	}
	d.mu.Lock()
	m := d.events[event]
	d.mu.Unlock()
	return m.reached.Load() == m.recorded.Load(), nil
}

func (d *double) word(p uintptr) *uint64 {
	_, b := d.bytes(p, 8)
	w, err := fabric.Words(b)
	if err != nil || len(w) != 1 {
		d.t.Errorf("no word at %#x: %v", p, err)
		return new(uint64)
	}
	return &w[0]
}

func (d *double) WriteWait(stream, ready uintptr, r uint64, done uintptr, value uint64) (captures bool, err error) {
	if captures, err = d.Capturing(stream); captures || err != nil {
		return captures, err
	}
	if err := d.enter("WriteWait"); err != nil {
		return false, err
	}
	s := d.line(stream)
	s.put(func() { atomic.StoreUint64(d.word(ready), r) })
	s.put(func() {
		w := d.word(done)
		s.await(func() bool { return atomic.LoadUint64(w) >= value })
	})
	return false, nil
}

func (d *double) Capturing(stream uintptr) (bool, error) {
	if err := d.enter("Capturing"); err != nil {
		return false, err
	}
	if d.line(stream) == nil {
		return false, invalid(fmt.Sprintf("no stream %#x", stream))
	}
	return false, nil
}

// hold parks a stream until the result is called.
func (d *double) hold(stream uintptr) (release func()) {
	gate := make(chan struct{})
	s := d.line(stream)
	s.put(func() {
		select {
		case <-gate:
		case <-s.ended:
		}
	})
	return sync.OnceFunc(func() { close(gate) })
}

// leaks holds the device to having nothing left of the group's.
func (d *double) leaks(t testing.TB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.blocks {
		assert.False(t, b.host, "%d bytes of pinned memory at %#x are not freed", len(b.mem), b.at)
	}
	assert.Empty(t, d.events, "events are not closed")
}

func (s *line) put(op func()) {
	s.mu.Lock()
	s.ops = append(s.ops, op)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *line) run() {
	defer close(s.idle)
	for {
		s.mu.Lock()
		ops := s.ops
		s.ops = nil
		s.mu.Unlock()
		for _, op := range ops {
			op()
		}
		if len(ops) > 0 {
			continue
		}
		select {
		case <-s.wake:
		case <-s.ended:
			return
		}
	}
}

// land lets the copies land that were lost so far.
func (s *line) land() { close(s.late) }

func (s *line) end() {
	s.mu.Lock()
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
	s.mu.Unlock()
	<-s.idle
}

// await parks the stream until yes, looking now and then.
func (s *line) await(yes func() bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !yes() {
		select {
		case <-timer.C:
			timer.Reset(20 * time.Microsecond)
		case <-s.ended:
			return
		}
	}
}
