//go:build cgo

package mailbox_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func pattern(b []byte, seed uint64) {
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
}

// pieces draws where a call's pieces lie, none over another on either side, as strides or as a list, and puts it into a.
func pieces(t *rapid.T, g *gate, a *args) [][3]int {
	n := rapid.IntRange(0, 5).Draw(t, "pieces")
	odd := rapid.IntRange(0, 17)
	a.Pieces = uint32(n)
	at := make([][3]int, n)
	if rapid.Bool().Draw(t, "list") {
		var from, to int
		list := g.memory[memory-4096:]
		for i := range at {
			from, to = from+odd.Draw(t, "gap"), to+odd.Draw(t, "gap")
			size := rapid.IntRange(0, 3000).Draw(t, "bytes")
			at[i] = [3]int{from, to, size}
			from, to = from+size, to+size
			for j, v := range at[i] {
				binary.NativeEndian.PutUint64(list[i*24+j*8:], uint64(v))
			}
		}
		a.List = address(list)
		return at
	}
	size := rapid.IntRange(0, 5000).Draw(t, "bytes")
	stride, pitch := size+odd.Draw(t, "stride"), size+odd.Draw(t, "pitch")
	a.Bytes, a.Stride, a.Pitch = uint64(size), uint64(stride), uint64(pitch)
	for i := range at {
		at[i] = [3]int{i * stride, i * pitch, size}
	}
	return at
}

func TestEveryByteOfEveryPieceMovesAndNoOther(t *testing.T) {
	g := newGate(t)
	seq := uint64(0)
	rapid.Check(t, func(r *rapid.T) {
		seq++
		g.blocks, g.threads = rapid.IntRange(1, 5).Draw(r, "blocks"), rapid.SampledFrom([]int{32, 64, 96, 512}).Draw(r, "threads")
		a := g.args()
		start := rapid.IntRange(0, 33).Draw(r, "memory")
		a.Memory += uint64(start)
		at := pieces(r, g, &a)
		a.Descriptor = seq * 3
		if rapid.Bool().Draw(r, "lengths") {
			a.World, a.Lengths, a.LengthsAt = 3, a.Memory+40000, 50000
		}

		pattern(g.memory[:memory-4096], seq)
		pattern(g.down, seq+1)
		want := bytes.Clone(g.down)
		for _, p := range at {
			copy(g.windowOf(want, seq)[p[1]:][:p[2]], g.memory[start+p[0]:])
		}
		if a.World > 0 {
			copy(g.windowOf(want, seq)[50000:][:12], g.memory[start+40000:])
		}
		g.stage(a)
		require.True(t, bytes.Equal(want, g.down), "the slab of sequence %d", seq)
		require.Equal(t, seq, *g.ready(seq))
		require.Equal(t, seq*3, g.descriptor(seq))

		pattern(g.up, seq+2)
		want = bytes.Clone(g.memory)
		for _, p := range at {
			copy(want[start+p[0]:][:p[2]], g.windowOf(g.up, seq)[p[1]:])
		}
		g.finish(seq)
		g.collect(a)
		require.True(t, bytes.Equal(want, g.memory), "the memory of sequence %d", seq)
		require.Equal(t, seq, g.collected())
	})
}

// A proxy ends each sequence as it sees it, and gives the next window's bytes back, each a number higher.
func (g *gate) proxy(last uint64) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for seq := uint64(1); seq <= last; seq++ {
			for atomic.LoadUint64(g.ready(seq)) != seq {
				runtime.Gosched()
			}
			up := g.windowOf(g.up, seq)
			for i, b := range g.windowOf(g.down, seq)[:64] {
				up[i] = b + byte(g.descriptor(seq))
			}
			g.finish(seq)
		}
	}()
	return ended
}

func TestLapsOfTheRingBesideALiveHost(t *testing.T) {
	const calls = 2*ring + 7
	for back := range uint64(2) {
		g := newGate(t)
		a := g.args()
		a.Pieces, a.Bytes = 1, 64
		proxy := g.proxy(calls)
		check := func(seq uint64) {
			want := make([]byte, 64)
			pattern(want, seq)
			out := a
			out.Memory += 4096
			out.Back = uint32(g.epoch() - seq)
			g.collect(out)
			for i := range want {
				require.Equal(t, want[i]+byte(seq*5), g.memory[4096+i], "byte %d of sequence %d", i, seq)
			}
		}
		for seq := uint64(1); seq <= calls; seq++ {
			pattern(g.memory[:64], seq)
			a.Descriptor = seq * 5
			g.stage(a)
			if seq > back {
				check(seq - back)
			}
		}
		if back > 0 {
			check(calls)
		}
		<-proxy
		assert.Equal(t, uint64(calls), g.epoch())
		assert.Zero(t, g.failure())
	}
}

func TestACollectWaitsUntilItsResultIsThere(t *testing.T) {
	g := newGate(t)
	a := g.args()
	a.Pieces, a.Bytes = 1, 100
	g.stage(a)
	ended := parked(t, func() { g.collect(a) })
	assert.Zero(t, g.collected())
	pattern(g.windowOf(g.up, 1), 9)
	g.finish(1)
	<-ended
	assert.Equal(t, uint64(1), g.collected())
	assert.True(t, bytes.Equal(g.windowOf(g.up, 1)[:100], g.memory[:100]))
}

func TestAbortEndsAParkedKernel(t *testing.T) {
	g := newGate(t)
	a := g.args()
	a.Pieces, a.Bytes = 1, 100
	g.stage(a)
	pattern(g.memory, 1)
	before := bytes.Clone(g.memory)
	ended := parked(t, func() { g.collect(a) })
	g.abort()
	<-ended
	assert.Equal(t, failure(2, 1), g.failure())
	assert.Equal(t, failure(2, 1), g.poison())
	assert.True(t, bytes.Equal(before, g.memory), "nothing is copied")
}

func TestAWaitEndsInItsTime(t *testing.T) {
	g := newGate(t)
	a := g.args()
	g.stage(a)
	a.Timeout = uint64(20 * time.Millisecond)
	start := time.Now()
	g.collect(a)
	assert.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
	assert.Equal(t, failure(3, 1), g.failure())
}
