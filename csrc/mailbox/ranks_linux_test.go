//go:build cgo

package mailbox_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/csrc/mailbox/internal/adapters"
	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
	"github.com/hipfabric/hipfabric/fabric"
)

var floats = []fabric.DType{fabric.F16, fabric.BF16, fabric.F32}

// draw gives a call of a world, of up to most bytes.
func draw(r *rapid.T, world, most int) step {
	s := step{
		op:    rapid.SampledFrom([]fabric.Op{fabric.AllGather, fabric.AllReduce, fabric.Exchange}).Draw(r, "op"),
		bytes: rapid.OneOf(rapid.IntRange(0, 80), rapid.IntRange(0, most)).Draw(r, "bytes"), shift: rapid.IntRange(0, 40).Draw(r, "shift"),
		inPlace: rapid.Bool().Draw(r, "in place"), blocks: rapid.IntRange(1, 4).Draw(r, "blocks"), threads: rapid.SampledFrom([]int{32, 64, 512}).Draw(r, "threads"),
	}
	switch s.op {
	case fabric.AllReduce:
		s.dtype = rapid.SampledFrom(floats).Draw(r, "dtype")
		s.reduce = rapid.SampledFrom(fabric.ReduceOps()).Draw(r, "reduce")
		s.bytes -= s.bytes % s.dtype.Size()
	case fabric.Exchange:
		s.pair[0] = rapid.IntRange(0, world-1).Draw(r, "rank")
		s.pair[1] = (s.pair[0] + rapid.IntRange(1, world-1).Draw(r, "peer")) % world
	default:
	}
	return s
}

// Calls of the group and of pairs, as they come, over stripes that arrive late and in any order.
func TestEveryRankGetsWhatEachSent(t *testing.T) {
	const most = 9000
	for _, c := range []struct{ world, stripes int }{{2, 1}, {3, 2}, {4, 3}, {5, 8}} {
		combine, g := hosts(t, c.world), newGroup(t, c.world, c.stripes, most)
		t.Run(fmt.Sprintf("%d ranks, %d stripes", c.world, c.stripes), rapid.MakeCheck(func(r *rapid.T) {
			steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step { return draw(r, c.world, most) }), 1, 9).Draw(r, "steps")
			g.clear()
			defer g.Start(rapid.Uint64().Draw(r, "seed"))()
			require.NoError(r, g.play(steps, combine))
		}))
	}
}

// Each binary16 and bfloat16 there is, beside each of some others, and floats of any bits.
func TestReductionsAreTheHostsBitForBit(t *testing.T) {
	const world, most = 3, 2 << 16
	g, combine := newGroup(t, world, 2, most), hosts(t, world)
	defer g.Start(1)()
	var steps []step
	for _, dtype := range floats {
		for _, reduce := range fabric.ReduceOps() {
			steps = append(steps, step{op: fabric.AllReduce, bytes: most, dtype: dtype, reduce: reduce, blocks: 1, threads: 64})
		}
	}
	every := func(number, rank int) []byte {
		b := make([]byte, most)
		pattern(b, uint64(number*world+rank))
		if rank == number%world { // every number of 16 bits, on one rank
			for i := range most / 2 {
				b[2*i], b[2*i+1] = byte(i), byte(i>>8)
			}
		}
		if rank == (number+1)%world { // and where arithmetic changes its mind
			edges := []uint16{0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01, 0x007f, 0x0080, 0x3f80, 0x7f7f, 0x7f80, 0xff80, 0x7fc1}
			for i := range most / 2 {
				e := edges[(i+number)%len(edges)]
				b[2*i], b[2*i+1] = byte(e), byte(e>>8)
			}
		}
		return b
	}
	for i := range steps {
		steps[i].made = every
	}
	require.NoError(t, g.play(steps, combine))
}

// A graph that is launched again goes on with the epochs, of the group and of each pair: the same arguments each time.
func TestEpochsGoOn(t *testing.T) {
	const laps = 500
	g := newGroup(t, 3, 2, 4096)
	defer g.Start(2)()
	var steps []step
	for i := range laps {
		steps = append(steps, step{op: fabric.AllGather, bytes: 100, blocks: 2, threads: 32}, step{op: fabric.Exchange, pair: [2]int{i % 2, 2}, bytes: 60, blocks: 1, threads: 32})
	}
	require.NoError(t, g.play(steps, nil))
	for r, want := range [][]uint64{{laps, 0, laps / 2}, {0, laps, laps / 2}, {laps / 2, laps / 2, laps}} {
		for target, epoch := range want {
			assert.Equal(t, epoch, g.members[r].epoch(target), "rank %d, target %d", r, target)
			assert.Equal(t, epoch, adapters.Load(g.members[r].region, target*adapters.DoorbellBytes+adapters.DoorbellEnded), "rank %d, target %d", r, target)
		}
	}
}

// A doorbell is a level: the peers' payloads let the first call end, and the second rings, before the proxy has seen either.
func TestAProxyMaySleepAcrossTwoCalls(t *testing.T) {
	g := newGroup(t, 2, 2, 4096)
	g.Sleeps = func(rank, target int, posted uint64) bool {
		return rank == 0 && posted%2 == 0 && adapters.Load(g.Regions[0], target*adapters.DoorbellBytes+adapters.DoorbellEpoch) < posted+2
	}
	defer g.Start(3)()
	var steps []step
	for i := range 20 {
		steps = append(steps, step{op: fabric.AllGather, bytes: 3000 - 140*i, blocks: 1, threads: 32}, step{op: fabric.AllGather, bytes: 17 * i, blocks: 1, threads: 32},
			step{op: fabric.Exchange, pair: [2]int{0, 1}, bytes: 200 + i, blocks: 1, threads: 32}, step{op: fabric.Exchange, pair: [2]int{1, 0}, bytes: 40, blocks: 1, threads: 32})
	}
	require.NoError(t, g.play(steps, nil))
	assert.Equal(t, 40, g.Skipped())
}

func TestAWaitThatEndsSaysWhereItWas(t *testing.T) {
	g := newGroup(t, 3, 2, 4096)
	c := g.call(1, 100)
	c.Timeout = uint64(20 * time.Millisecond)
	for _, peer := range []int{0, 2} {
		for stripe := range 2 {
			if peer != 2 || stripe != 1 {
				adapters.Store(g.members[1].region, adapters.FlagAt(adapters.ClassGroup, 1, peer, stripe), 1)
			}
		}
	}
	start := time.Now()
	launch(twin.Gather, c, 2, 32)
	took := time.Since(start)
	r := g.members[1].record()
	assert.Equal(t, record{failed | 2<<56 | 1, 1, 2, 1, 0, 1, r.Microseconds}, r)
	assert.GreaterOrEqual(t, r.Microseconds, uint64(20000))
	assert.GreaterOrEqual(t, took, time.Duration(r.Microseconds)*time.Microsecond)
	assert.Zero(t, g.members[1].epoch(1))

	adapters.Store(g.members[1].region, adapters.FlagAt(adapters.ClassGroup, 1, 2, 1), 1)
	pattern(g.members[1].out, 1)
	before := bytes.Clone(g.members[1].out)
	launch(twin.AllReduce, c, 2, 32)
	assert.Equal(t, before, g.members[1].out, "a poisoned group does nothing")
	assert.Zero(t, g.members[1].epoch(1))
}

func TestAbortEndsAParkedCall(t *testing.T) {
	g := newGroup(t, 2, 1, 4096)
	c := g.call(0, 100)
	c.Target, c.Timeout = 1, 0
	ended := parked(t, func() { launch(twin.Exchange, c, 2, 32) })
	adapters.Store(g.members[0].region, adapters.AbortAt, 1)
	<-ended
	r := g.members[0].record()
	assert.Equal(t, record{failed | 1<<56 | 1, 1, 1, 0, 0, 1, r.Microseconds}, r)
}

// Two ranks in different calls both find out, before either has taken a byte.
func TestRanksInDifferentCallsAreRefused(t *testing.T) {
	g := newGroup(t, 2, 2, 4096)
	defer g.Start(4)()
	ended := make(chan struct{})
	var running atomic.Int32
	running.Store(2)
	for r := range 2 {
		pattern(g.members[r].out, 5)
		c := g.call(r, 100)
		c.Tag = uint32(0xa0 + r)
		c.Target = uint32(1 - r)
		go func() {
			launch(twin.Exchange, c, 1, 32)
			if running.Add(-1) == 0 {
				close(ended)
			}
		}()
	}
	<-ended
	untouched := make([]byte, 100)
	pattern(untouched, 5)
	for r := range 2 {
		got := g.members[r].record()
		assert.Equal(t, uint64(failed|3<<56|1), got.Failed)
		assert.Equal(t, uint64(0xa0+1-r)<<adapters.FlagShift|1, got.Seen)
		assert.Equal(t, uint64(0xa0+r)<<adapters.FlagShift|1, got.Awaited)
		assert.Equal(t, uint64(1-r), got.Peer)
		assert.Equal(t, untouched, g.members[r].out[:100])
	}
}

// 64 ranks of 8 stripes have more flags than a block has lanes. One rank's kernels run; what the others send is there.
func TestTheLargestWorld(t *testing.T) {
	const world, size = adapters.Ranks, 100
	for _, rank := range []int{0, 41, world - 1} {
		g := &group{world: world, Group: adapters.Group{SlotBytes: 4096, Stripes: adapters.MaxStripes}, members: make([]*member, world)}
		m := &member{mapped(t, adapters.RegionBytes(world, 4096)), mapped(t, adapters.MailboxBytes), mapped(t, size), mapped(t, world*size)}
		g.members[rank] = m
		brings := func(r, slot int) []byte {
			if r == rank {
				return m.in
			}
			return m.region[adapters.RecvAt(world, 4096, adapters.ClassGroup, r, slot):]
		}
		arrive := func(epoch uint64) {
			for r := range world {
				for stripe := range adapters.MaxStripes {
					adapters.Store(m.region, adapters.FlagAt(adapters.ClassGroup, int(epoch%2), r, stripe), epoch)
				}
			}
		}
		want := make([]byte, world*size)
		pattern(want, uint64(rank))
		for r := range world {
			copy(brings(r, 1), want[r*size:][:size])
		}
		arrive(1)
		launch(twin.Gather, g.call(rank, size), 2, 96)
		assert.Equal(t, want, m.out[:world*size])

		var sum float32
		for r := range world {
			sum += float32(r*r) / 3
			copy(brings(r, 0), fabric.Bytes([]float32{float32(r*r) / 3}))
		}
		arrive(2)
		c := g.call(rank, 4)
		c.Dtype, c.Reduce = uint32(fabric.F32), uint32(fabric.Sum)
		launch(twin.AllReduce, c, 1, 32)
		assert.Equal(t, fabric.Bytes([]float32{sum}), m.out[:4])
		assert.Zero(t, m.record())
		assert.Equal(t, uint64(2), m.epoch(rank))
	}
}
