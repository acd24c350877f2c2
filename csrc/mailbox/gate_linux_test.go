//go:build cgo

package mailbox_test

import (
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/csrc/mailbox/internal/turns"
	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
)

const (
	ring   = 256
	window = 1 << 16
	memory = 1 << 18
	failed = 1 << 62
)

// args is struct hf_args.
type args struct {
	Device, Host, Slab, Window, Memory, Bytes, Stride, Pitch, List, Timeout, Descriptor, Lengths, LengthsAt uint64
	Pieces, World, Clock, Back                                                                              uint32
}

func (a args) encode(t *testing.T) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, a)
	require.NoError(t, err)
	return b
}

// A gate is the memory of one group, and what a host does with it.
type gate struct {
	t                *testing.T
	device, host     []uint64
	down, up, memory []byte // two windows each way; and the engine's memory
	blocks, threads  int
}

func newGate(t *testing.T) *gate {
	all, err := unix.Mmap(-1, 0, 4096+8192+4*window+memory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(all) })
	take := func(n int) []byte {
		b := all[:n:n]
		all = all[n:]
		return b
	}
	words := func(b []byte) []uint64 { return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8) }
	return &gate{t, words(take(4096)), words(take(8192)), take(2 * window), take(2 * window), take(memory), 1, 32}
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

func (g *gate) args() args {
	return args{
		Device: uint64(uintptr(unsafe.Pointer(&g.device[0]))), Host: uint64(uintptr(unsafe.Pointer(&g.host[0]))),
		Window: window, Memory: address(g.memory),
	}
}

func (g *gate) stage(a args) {
	a.Slab = address(g.down)
	twin.Stage(a.encode(g.t), g.blocks, g.threads)
}

func (g *gate) collect(a args) {
	a.Slab = address(g.up)
	twin.Collect(a.encode(g.t), g.blocks, g.threads)
}

func (g *gate) epoch() uint64                      { return g.device[0] }
func (g *gate) poison() uint64                     { return g.device[8] }
func (g *gate) ready(seq uint64) *uint64           { return &g.host[seq%ring] }
func (g *gate) descriptor(seq uint64) uint64       { return g.host[ring+seq%ring] }
func (g *gate) finish(seq uint64)                  { atomic.StoreUint64(g.done(seq), seq) }
func (g *gate) done(seq uint64) *uint64            { return &g.host[2*ring+seq%ring] }
func (g *gate) abort()                             { atomic.StoreUint64(&g.host[6144/8], 1) }
func (g *gate) failure() uint64                    { return atomic.LoadUint64(&g.host[6208/8]) }
func (g *gate) collected() uint64                  { return atomic.LoadUint64(&g.host[6272/8]) }
func failure(reason, seq uint64) uint64            { return failed | reason<<56 | seq }
func (g *gate) windowOf(s []byte, n uint64) []byte { return s[n%2*window:][:window] }

// parked runs launch beside the test, and returns once it has waited for some turns: its end is told on the channel.
func parked(t *testing.T, launch func()) <-chan struct{} {
	t.Helper()
	before, ended := turns.Count(), make(chan struct{})
	go func() {
		defer close(ended)
		launch()
	}()
	for turns.Count() < before+10 {
		select {
		case <-ended:
			t.Fatal("the kernel did not wait")
		default:
			runtime.Gosched()
		}
	}
	return ended
}
