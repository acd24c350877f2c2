package fabrictest_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// gpu is a device of one stream in this process: a goroutine that runs what is queued, in order, on memory whose addresses
// it makes up.
type gpu struct {
	ops  chan func()
	done chan struct{}

	mu   sync.Mutex
	next fabric.DevPtr
	mem  map[fabric.DevPtr][]byte

	capturing bool
	captured  []func()
}

const ownStream fabric.Stream = 0x1000

func newGPU() *gpu {
	g := &gpu{ops: make(chan func(), 4096), done: make(chan struct{}), next: 1 << 20, mem: map[fabric.DevPtr][]byte{}}
	go func() {
		defer close(g.done)
		for op := range g.ops {
			op()
		}
	}()
	return g
}

func (g *gpu) alloc(n int) (fabric.DevPtr, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.next
	g.mem[p] = make([]byte, n)
	g.next += fabric.DevPtr(n+4095)&^4095 + 4096
	return p, nil
}

func (g *gpu) free(p fabric.DevPtr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mem, p)
	return nil
}

// at is the memory behind an address.
func (g *gpu) at(p fabric.DevPtr, n int) []byte {
	if n == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for base, m := range g.mem {
		if p >= base && int(p-base)+n <= len(m) {
			return m[p-base:][:n:n]
		}
	}
	panic(fmt.Sprintf("no %d bytes at %#x", n, p))
}

func (g *gpu) synchronize(ctx context.Context) error {
	passed := make(chan struct{})
	g.ops <- func() { close(passed) }
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gpu) hold() (func(), error) {
	held := make(chan struct{})
	g.ops <- func() { <-held }
	return sync.OnceFunc(func() { close(held) }), nil
}

type graph struct {
	g   *gpu
	ops []func()
}

func (g *gpu) graph(record func() error) (fabrictest.Graph, error) {
	g.capturing, g.captured = true, nil
	err := record()
	g.capturing = false
	return &graph{g, g.captured}, err
}

func (r *graph) Launch() error {
	ops := r.ops
	r.g.ops <- func() {
		for _, op := range ops {
			op()
		}
	}
	return nil
}

func (r *graph) Close() error { r.ops = nil; return nil }

func (g *gpu) device() fabrictest.Device {
	return fabrictest.Device{Stream: ownStream, Alloc: g.alloc, Free: g.free, Synchronize: g.synchronize, Hold: g.hold, Graph: g.graph,
		Upload:   func(dst fabric.DevPtr, src []byte) error { copy(g.at(dst, len(src)), src); return nil },
		Download: func(dst []byte, src fabric.DevPtr) error { copy(dst, g.at(src, len(dst))); return nil },
		Close:    func() error { close(g.ops); <-g.done; return nil }}
}

// queued is a fabric.StreamTransport over a host path: the stream itself makes the call when it reaches it.
type queued struct {
	*gpu
	tr      fabric.Transport
	inner   *fabric.Collective
	timeout time.Duration
	slots   chan struct{}
	ended   chan struct{}
	once    sync.Once
	cause   atomic.Pointer[fabric.Cause]
	parks   atomic.Int64 // times a call found the ring full
}

const ring = 256

func newQueued(g *gpu, tr fabric.Transport, o fabric.Options) *queued {
	return &queued{gpu: g, tr: tr, inner: fabric.New(tr, o), timeout: o.Timeout, slots: make(chan struct{}, ring), ended: make(chan struct{})}
}

func (q *queued) Kind() string              { return "queued" }
func (q *queued) Rank() int                 { return q.tr.Rank() }
func (q *queued) World() int                { return q.tr.World() }
func (q *queued) Ordered() bool             { return true }
func (q *queued) Waiting() uint64           { return q.tr.Waiting() }
func (q *queued) Progress() fabric.Progress { return q.inner.Progress() }
func (q *queued) Records() []fabric.Record  { return q.inner.Records() }
func (q *queued) Stats() fabric.Stats       { return q.inner.Stats() }
func (q *queued) Close() error              { return q.inner.Close() }

func (q *queued) Alloc(int) (fabric.DeviceMemory, error) {
	return nil, fabric.Unsupportedf("no memory of its own")
}

func (q *queued) Register([]byte, fabric.DevPtr) (fabric.DeviceMemory, error) {
	return nil, fabric.Unsupportedf("it uses no memory in place")
}

func (q *queued) Capture(fabric.Stream) (fabric.PlanTransport, error) { return q, nil }
func (q *queued) End() error                                          { return nil }
func (q *queued) Release() error                                      { return nil }

func (q *queued) Abort(cause error) {
	q.once.Do(func() {
		q.cause.Store(fabric.CauseOf(cause))
		close(q.ended)
		q.tr.Abort(cause)
	})
}

func (q *queued) Queue(_ fabric.Stream, c *fabric.Call) error {
	if cause := q.cause.Load(); cause != nil {
		return cause
	}
	call := *c
	call.Lengths, call.InLengths = slices.Clone(c.Lengths), slices.Clone(c.InLengths)
	if q.capturing {
		q.captured = append(q.captured, func() { q.reached(call) })
		return nil
	}
	select {
	case q.slots <- struct{}{}:
	default:
		q.parks.Add(1)
		late := time.NewTimer(max(2*q.timeout, time.Minute)) // a call under way ends sooner
		defer late.Stop()
		select {
		case q.slots <- struct{}{}:
		case <-q.ended:
			return q.cause.Load()
		case <-late.C:
			return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: q.Rank(), From: -1, Text: "the stream has taken none of the calls queued on it"}
		}
	}
	q.ops <- func() {
		q.reached(call)
		<-q.slots
	}
	return nil
}

// reached is what the stream does.
func (q *queued) reached(call fabric.Call) {
	if q.cause.Load() == nil {
		if err := q.make(&call); err != nil {
			q.Abort(fabric.CauseOf(err))
		}
	}
}

func (q *queued) make(c *fabric.Call) error {
	d := c.Device
	c.Device = fabric.OnDevice{}
	if d.Lengths != 0 {
		c.Lengths = make([]int, q.World())
		for r := range c.Lengths {
			n := int(int32(binary.LittleEndian.Uint32(q.at(d.Lengths+fabric.DevPtr(4*r), 4))))
			if n < 0 || n > c.Stride {
				q.inner.Abort(fmt.Errorf("lengths[%d] is %d, outside 0..stride %d", r, n, c.Stride))
				return q.inner.Check()
			}
			c.Lengths[r] = n
		}
		d.InBytes = c.Lengths[q.Rank()]
	}
	c.In, c.Out = q.at(d.In, d.InBytes), q.at(d.Out, d.OutBytes)
	s, err := q.inner.Begin(*c)
	if err != nil {
		return err
	}
	return s.Wait()
}

func (q *queued) Sync(ctx context.Context, _ fabric.Stream) error {
	if err := q.synchronize(ctx); err != nil {
		return err
	}
	if cause := q.cause.Load(); cause != nil {
		return cause
	}
	return nil
}

func openStreams(_ *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
	net, arbiters := fabrictest.NewNetwork(world), fabrictest.Arbiters(world)
	subjects := make([]fabrictest.Subject, world)
	for r := range subjects {
		g := newGPU()
		options := fabric.Options{Group: o.Group, Timeout: o.Timeout, Arbiter: arbiters[r]}
		c := fabric.NewStream(newQueued(g, net.Transport(r), options), options)
		arbiters[r].OnCause(func() { _ = c.Check() })
		subjects[r] = fabrictest.Stream(c, g.device())
	}
	return subjects
}

func TestAQueueingPathKeepsTheContract(t *testing.T) { fabrictest.RunPairwise(t, openStreams) }

func TestAQueueingPathKeepsWhatOnlyItCan(t *testing.T) { fabrictest.RunStream(t, openStreams) }

func TestAQueueingPathIsCaptured(t *testing.T) { fabrictest.RunCapture(t, openStreams) }
