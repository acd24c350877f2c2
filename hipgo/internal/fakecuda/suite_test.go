package fakecuda_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/conform"
	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
	"github.com/hipfabric/hipfabric/hipgo/internal/fakecuda"
)

// gpu is a real NVIDIA GPU where this machine has one, else the fake driver's, which runs kernels by their host twins.
func gpu(t *testing.T) (d *hipgo.Device, real bool) {
	if !driver.Built {
		t.Skip("this build has no cgo")
	}
	// Streams share hardware queues, 8 unless this says otherwise, and a parked one holds up the others.
	t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
	rt, err := hipgo.OpenCUDA(hipgo.Config{})
	if err != nil {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		library, err := fakecuda.Build("../../..", t.TempDir())
		require.NoError(t, err)
		rt, err = hipgo.OpenCUDA(hipgo.Config{Library: library})
		require.NoError(t, err)
		d, err = rt.Device(0)
		require.NoError(t, err)
		return d, false
	}
	d, err = rt.Device(0)
	require.NoError(t, err)
	return d, true
}

// A process has one CUDA driver, so all of it is one test. The ranks of a world share the one GPU.
func TestTheContractHoldsOnTheCUDAPlatform(t *testing.T) {
	d, real := gpu(t)
	t.Logf("%s; real: %v", d, real)
	if real {
		r := conform.Run(t.Context(), d, conform.Options{})
		t.Logf("\n%s", r)
		assert.True(t, r.OK())
	}
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			open := func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
				return subjects(t, d, gate, world, o)
			}
			fabrictest.RunStream(t, open)
			if real { // the fake driver is the software device, on which stage's own tests run it
				fabrictest.RunPairwise(t, open)
			}
		})
	}
}

func subjects(t *testing.T, d *hipgo.Device, gate stage.Gate, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
	net, arbiters := fabrictest.NewNetwork(world), fabrictest.Arbiters(world)
	all := make([]fabrictest.Subject, world)
	for r := range all {
		path, err := stage.Open(stage.Config{
			Transport: net.Transport(r), Driver: d.Seam(), Gate: gate, Image: mailbox.PTX, PartBytes: fabrictest.PartBytes,
			Group: o.Group, Timeout: o.Timeout, Arbiter: arbiters[r],
		})
		require.NoError(t, err)
		c := fabric.NewStream(path, fabric.Options{Group: o.Group, Timeout: o.Timeout, Arbiter: arbiters[r]})
		arbiters[r].OnCause(func() { _ = c.Check() })
		e := newEngine(t, d)
		all[r] = fabrictest.Stream(c, fabrictest.Device{
			Stream: fabric.Stream(e.s.Raw()), Alloc: e.alloc, Free: e.free, Upload: e.upload, Download: e.download,
			Synchronize: e.s.Synchronize, Hold: e.hold, Close: e.close,
		})
	}
	return all
}

// engine is what a rank's engine has on the GPU: a stream, and a way of its own to its memory.
type engine struct {
	d         *hipgo.Device
	s, copies hipgo.Stream
	mu        sync.Mutex // one copy at a time
	room      *hipgo.HostBuffer
	memory    sync.Map // fabric.DevPtr -> *hipgo.Buffer
	gates     *hipgo.HostBuffer
	used      int
}

const (
	roomBytes = 1 << 20
	gateCount = 512
)

func newEngine(t *testing.T, d *hipgo.Device) *engine {
	e := &engine{d: d}
	var err error
	e.s, err = d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	e.copies, err = d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	e.room, err = d.HostMalloc(roomBytes)
	require.NoError(t, err)
	e.gates, err = d.HostMalloc(8 * gateCount)
	require.NoError(t, err)
	return e
}

func (e *engine) close() error {
	return errors.Join(e.s.Close(), e.copies.Close(), e.room.Close(), e.gates.Close())
}

func (e *engine) alloc(n int) (fabric.DevPtr, error) {
	b, err := e.d.Malloc(n)
	if err != nil {
		return 0, err
	}
	e.memory.Store(fabric.DevPtr(b.Ptr()), b)
	return fabric.DevPtr(b.Ptr()), nil
}

func (e *engine) free(p fabric.DevPtr) error {
	b, ok := e.memory.LoadAndDelete(p)
	if !ok {
		return errors.New("freed twice")
	}
	return b.(*hipgo.Buffer).Close()
}

func (e *engine) copy(dst, src uintptr, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(e.copies.Copy(dst, src, n, hipgo.CopyDefault), e.copies.Synchronize(ctx))
}

func (e *engine) upload(dst fabric.DevPtr, src []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for off := 0; off < len(src); off += roomBytes {
		n := copy(e.room.Bytes(), src[off:])
		if err := e.copy(uintptr(dst)+uintptr(off), e.room.Ptr(), n); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) download(dst []byte, src fabric.DevPtr) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for off := 0; off < len(dst); off += roomBytes {
		n := min(roomBytes, len(dst)-off)
		if err := e.copy(e.room.Ptr(), uintptr(src)+uintptr(off), n); err != nil {
			return err
		}
		copy(dst[off:], e.room.Bytes()[:n])
	}
	return nil
}

// hold parks the engine's stream on a word that nothing else uses.
func (e *engine) hold() (func(), error) {
	if e.used == gateCount {
		return nil, errors.New("the test has no words left")
	}
	i := e.used
	e.used++
	e.gates.Words().Store(i, 0)
	if err := e.s.WaitValue64(e.gates.Words().Addr(i), 1, hipgo.ConditionGte, ^uint64(0)); err != nil {
		return nil, err
	}
	return func() { e.gates.Words().Store(i, 1) }, nil
}
