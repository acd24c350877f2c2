//go:build cgo

package twin_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const (
	ring   = 256
	bytes  = 3000
	window = 4096
)

// A gate is a group's memory on a software device, its kernels, and a stream to queue them on.
type gate struct {
	t                     *testing.T
	d                     *hipgo.Device
	s                     hipgo.Stream
	stage, collect        hipgo.Function
	words                 hipgo.Words
	slab                  *hipgo.HostBuffer // two windows down, two up
	device, memory        *hipgo.Buffer
	input, output         *hipgo.HostBuffer
	stageArgs, collectArg []byte
}

func (g *gate) host(n int) *hipgo.HostBuffer {
	b, err := g.d.HostMalloc(n)
	require.NoError(g.t, err)
	g.t.Cleanup(func() { assert.NoError(g.t, b.Close()) })
	return b
}

func (g *gate) malloc(n int) *hipgo.Buffer {
	b, err := g.d.Malloc(n)
	require.NoError(g.t, err)
	g.t.Cleanup(func() { assert.NoError(g.t, b.Close()) })
	require.NoError(g.t, g.s.Memset(b.Ptr(), 0, n))
	return b
}

// args lays a struct hf_args out by the C compiler's own offsets.
func args(fields map[string]uint64) []byte {
	at := twin.Layout()
	b := make([]byte, at["hf_args"])
	for name, v := range fields {
		if name == "pieces" || name == "world" || name == "clock" || name == "back" {
			binary.NativeEndian.PutUint32(b[at["hf_args."+name]:], uint32(v))
		} else {
			binary.NativeEndian.PutUint64(b[at["hf_args."+name]:], v)
		}
	}
	return b
}

func open(t *testing.T, s hiptest.Settings) *gate {
	w := hiptest.Start(t, s)
	g := &gate{t: t, d: w.Device(0)}
	var err error
	g.s, err = g.d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.s.Close()) })
	m, err := g.d.LoadModule(mailbox.Image)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	g.stage, err = m.Function("hf_stage")
	require.NoError(t, err)
	g.collect, err = m.Function("hf_collect")
	require.NoError(t, err)
	host := g.host(8192)
	g.words, g.slab = host.Words(), g.host(4*window)
	g.device, g.memory = g.malloc(256), g.malloc(2*window)
	g.input, g.output = g.host(window), g.host(window)
	fields := map[string]uint64{
		"device": uint64(g.device.Ptr()), "host": uint64(host.Ptr()), "window": window, "pieces": 1, "bytes": bytes,
		"timeout": uint64(20 * time.Second), "memory": uint64(g.memory.Ptr()), "slab": uint64(g.slab.Ptr()), "descriptor": 7,
	}
	g.stageArgs = args(fields)
	fields["slab"] += 2 * window
	fields["memory"] += window
	g.collectArg = args(fields)
	return g
}

// call queues what an engine has around a collective: its input comes to device memory, its output leaves it.
func (g *gate) call() {
	one := func(n int) [3]int { return [3]int{n, 1, 1} }
	require.NoError(g.t, g.s.Copy(g.memory.Ptr(), g.input.Ptr(), bytes, hipgo.CopyHostToDevice))
	require.NoError(g.t, g.s.Launch(g.stage, one(2), one(64), 0, g.stageArgs))
	require.NoError(g.t, g.s.Launch(g.collect, one(3), one(32), 0, g.collectArg))
	require.NoError(g.t, g.s.Copy(g.output.Ptr(), g.memory.Ptr()+window, bytes, hipgo.CopyDeviceToHost))
}

// serve plays the host for one call: what comes back is the input, each byte a number higher.
func (g *gate) serve(seq int) {
	for deadline := time.Now().Add(20 * time.Second); g.words.Load(seq%ring) < uint64(seq); runtime.Gosched() {
		require.True(g.t, time.Now().Before(deadline), "sequence %d never came", seq)
	}
	down, up := g.slab.Bytes()[seq%2*window:][:bytes], g.slab.Bytes()[(2+seq%2)*window:][:bytes]
	for i, b := range down {
		up[i] = b + byte(seq)
	}
	assert.Equal(g.t, uint64(7), g.words.Load(ring+seq%ring))
	g.words.Store(2*ring+seq%ring, uint64(seq))
}

func (g *gate) sync() {
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(g.t, g.s.Synchronize(ctx))
}

func (g *gate) check(seq int) {
	for i, b := range g.output.Bytes()[:bytes] {
		require.Equal(g.t, g.input.Bytes()[i]+byte(seq), b, "byte %d of sequence %d", i, seq)
	}
}

func TestTheImageLoadsAndRunsOnEachArchThatItIsFor(t *testing.T) {
	for _, arch := range []string{"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1151", "gfx1201"} {
		for _, integrated := range []bool{false, true} {
			t.Run(arch, func(t *testing.T) {
				g := open(t, hiptest.Settings{Arch: arch, Integrated: integrated})
				for seq := 1; seq <= 4; seq++ {
					for i := range g.input.Bytes() {
						g.input.Bytes()[i] = byte(i * seq)
					}
					g.call()
					g.serve(seq)
					g.sync()
					g.check(seq)
				}
			})
		}
	}
}

func TestAnotherArchIsRefusedByTheLoader(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Arch: "gfx906"})
	_, err := w.Device(0).LoadModule(mailbox.Image)
	var e *hipgo.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, 209, e.Code)
}

// The sequence is drawn on the device: a graph that is launched more often than the ring has slots goes on counting, and
// calls queued between its launches too.
func TestAGraphGoesOnCounting(t *testing.T) {
	g := open(t, hiptest.Settings{})
	for i := range g.input.Bytes() {
		g.input.Bytes()[i] = byte(i)
	}
	g.sync() // what a capture begins behind
	require.NoError(t, g.s.BeginCapture(hipgo.CaptureRelaxed))
	g.call()
	graph, err := g.s.EndCapture()
	require.NoError(t, err)
	exec, err := graph.Instantiate()
	require.NoError(t, err)
	defer func() { assert.NoError(t, exec.Close()); assert.NoError(t, graph.Close()) }()
	assert.Zero(t, g.words.Load(1), "nothing ran")
	for seq := 1; seq <= 2*ring+9; seq++ {
		if seq%5 == 0 {
			g.call()
		} else {
			require.NoError(t, exec.Launch(g.s))
		}
		g.serve(seq)
		g.sync()
		g.check(seq)
	}
	assert.Equal(t, uint64(2*ring+9), g.words.Load(6272/8))
}
