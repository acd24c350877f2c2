package roce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// host gives a rank pinned memory, which kernels and the test both reach.
func (r *mailRank) host(t testing.TB, n int) *hipgo.HostBuffer {
	t.Helper()
	b, err := r.d.HostMalloc(max(n, 1))
	require.NoError(t, err)
	r.held = append(r.held, b)
	return b
}

// mailCase is a call that ranks make together.
type mailCase struct {
	op     fabric.Op
	bytes  int
	dtype  fabric.DType
	reduce fabric.ReduceOp
	pair   [2]int // of an exchange
	shift  int    // of addresses, another on each rank
	inside bool   // in place
}

func drawMailCase(rng *rand.Rand, world, most int) mailCase {
	c := mailCase{bytes: rng.IntN(most + 1), shift: rng.IntN(33), inside: rng.IntN(3) == 0}
	if rng.IntN(3) == 0 {
		c.bytes = rng.IntN(70)
	}
	switch rng.IntN(3) {
	case 0:
		c.op = fabric.AllGather
	case 1:
		c.op, c.dtype = fabric.AllReduce, []fabric.DType{fabric.F16, fabric.BF16, fabric.F32}[rng.IntN(3)]
		c.reduce = fabric.ReduceOps()[rng.IntN(len(fabric.ReduceOps()))]
		c.bytes -= c.bytes % c.dtype.Size()
	default:
		c.op, c.inside = fabric.Exchange, false
		c.pair[0] = rng.IntN(world)
		c.pair[1] = (c.pair[0] + 1 + rng.IntN(world-1)) % world
	}
	return c
}

// input is what a rank gives: of numbers, such as have no odd sums.
func (c *mailCase) input(number, rank int) []byte {
	return noise(uint64(number*64+rank), c.bytes)
}

// wanted is what each rank is to get; sums are the hosts' own.
func (c *mailCase) wanted(t *testing.T, groups []*fabrictest.Group, number, world int) [][]byte {
	ins, outs := make([][]byte, world), make([][]byte, world)
	for r := range ins {
		ins[r] = c.input(number, r)
	}
	switch c.op {
	case fabric.AllGather:
		for r := range outs {
			outs[r] = bytes.Join(ins, nil)
		}
	case fabric.Exchange:
		outs[c.pair[0]], outs[c.pair[1]] = ins[c.pair[1]], ins[c.pair[0]]
	default:
		fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
			outs[g.Rank()] = make([]byte, c.bytes)
			return g.Host.AllReduce(outs[g.Rank()], ins[g.Rank()], c.dtype, c.reduce)
		})
	}
	return outs
}

// play makes calls on all ranks, so many before a rank waits for its stream.
func play(t *testing.T, ranks []*mailRank, seed uint64, calls, most int) {
	t.Helper()
	world := len(ranks)
	groups := fabrictest.Groups(t, world)
	rng := rand.New(rand.NewPCG(seed, 0))
	cases, wants := make([]mailCase, calls), make([][][]byte, calls)
	for i := range cases {
		cases[i] = drawMailCase(rng, world, most)
		wants[i] = cases[i].wanted(t, groups, i, world)
	}
	const slots = 8
	size := most + 64
	errs := onAll(world, func(r int) error {
		m := ranks[r]
		in, out := m.host(t, slots*size), m.host(t, slots*world*size)
		for from := 0; from < calls; from += slots {
			to := min(from+slots, calls)
			for i := from; i < to; i++ {
				if err := cases[i].queue(m, i, r, in, out, i%slots, size); err != nil {
					return fmt.Errorf("call %d %+v: %w", i, cases[i], err)
				}
			}
			if err := m.wait(t.Context()); err != nil {
				return err
			}
			for i := from; i < to; i++ {
				at := (i%slots)*world*size + (cases[i].shift*5+r)%31
				if got := out.Bytes()[at:][:len(wants[i][r])]; !bytes.Equal(got, wants[i][r]) {
					return fmt.Errorf("call %d %+v: rank %d got other bytes", i, cases[i], r)
				}
			}
		}
		return nil
	})
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
}

func (c *mailCase) queue(m *mailRank, number, rank int, in, out *hipgo.HostBuffer, slot, size int) error {
	world := m.World()
	fromAt, toAt := slot*size+(c.shift+rank)%29, slot*world*size+(c.shift*5+rank)%31
	give, from := in.Bytes()[fromAt:][:c.bytes], fabric.DevPtr(in.Ptr())+fabric.DevPtr(fromAt)
	to := fabric.DevPtr(out.Ptr()) + fabric.DevPtr(toAt)
	if c.inside {
		at := toAt
		if c.op == fabric.AllGather {
			at += rank * c.bytes
		}
		give, from = out.Bytes()[at:][:c.bytes], fabric.DevPtr(out.Ptr())+fabric.DevPtr(at)
	}
	copy(give, c.input(number, rank))
	switch c.op {
	case fabric.AllGather:
		return m.AllGather(m.stream(), to, from, c.bytes)
	case fabric.Exchange:
		for i, r := range c.pair {
			if r == rank {
				return m.Exchange(m.stream(), to, from, c.bytes, c.pair[1-i])
			}
		}
		return nil
	default:
		return m.AllReduce(m.stream(), to, from, c.bytes/c.dtype.Size(), c.dtype, c.reduce)
	}
}

// Calls of the group and of pairs as they come, of all sizes and addresses, over every kind of network.
func TestMailboxBringsWhatEachRankSent(t *testing.T) {
	networks := []struct {
		name     string
		topology verbstest.Topology
		world    int
		change   func(*verbstest.Fabric)
		c        Config
	}{
		{"two ranks", verbstest.Switch(2, 1), 2, nil, Config{}},
		{"two ranks, eight stripes on one rail, late", verbstest.Switch(2, 1), 2, func(f *verbstest.Fabric) { f.Delay(0, 200*time.Microsecond) }, Config{Stripes: 8}},
		{"crossed cables, no order", verbstest.Crossed(), 2, func(f *verbstest.Fabric) { f.OutOfOrder(true) }, Config{}},
		{"three ranks in a ring", verbstest.Ring(3), 3, nil, Config{Stripes: 2}},
		{"four ranks in a ring", verbstest.Ring(4), 4, nil, Config{}},
		{"four ranks in a ring, no order, late", verbstest.Ring(4), 4, func(f *verbstest.Fabric) { f.OutOfOrder(true); f.Delay(0, 200*time.Microsecond) }, Config{Stripes: 3}},
		{"three ranks, denied order", verbstest.Switch(3, 1), 3, func(f *verbstest.Fabric) { f.DenyOrder(true) }, Config{}},
		{"four ranks, two rails, no order, late", verbstest.Switch(4, 2), 4, func(f *verbstest.Fabric) { f.OutOfOrder(true); f.Delay(0, 200*time.Microsecond) }, Config{}},
		{"four ranks, losses", verbstest.Switch(4, 1), 4, func(f *verbstest.Fabric) { f.Loss(0.01) }, Config{PacketTimeout: 4 * time.Millisecond}},
	}
	w := hiptest.Start(t, hiptest.Settings{Devices: mailRanks})
	for i, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			f := inMemory(t, n.topology)
			if n.change != nil {
				n.change(f)
			}
			g := &mailGroup{w: w, f: f, world: n.world, c: n.c, slot: 8192, timeout: 20 * time.Second}
			ranks := g.open(t)
			calls := 160
			if underRace {
				calls = 40
			}
			play(t, ranks, uint64(i), calls, 8192)
			for r, m := range ranks {
				assert.Zero(t, m.path.rest.Stats().Calls, "rank %d: all go by the mailbox", r)
			}
			mailDone(t, ranks)
			assert.Zero(t, f.Left())
		})
	}
}

// What the mailbox takes, and what it does not: by operation, dtype and size alone.
func TestWhatIsTooLargeOrNoneOfItsCallsGoesAlong(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	f := inMemory(t, verbstest.Switch(2, 1))
	ranks := (&mailGroup{w: w, f: f, world: 2, slot: 4096, timeout: 10 * time.Second}).open(t)
	errs := onAll(2, func(r int) error {
		m := ranks[r]
		in, out := m.host(t, 4200), m.host(t, 8400)
		a, b, s := fabric.DevPtr(in.Ptr()), fabric.DevPtr(out.Ptr()), m.stream()
		for i, c := range []struct {
			queue func() error
			mail  bool
		}{
			{func() error { return m.AllGather(s, b, a, 4096) }, true},
			{func() error { return m.AllGather(s, b, a, 4097) }, false},
			{func() error { return m.AllGather(s, b, a, 0) }, true},
			{func() error { return m.AllReduce(s, b, a, 1024, fabric.F32, fabric.Avg) }, true},
			{func() error { return m.AllReduce(s, b, a, 1025, fabric.F32, fabric.Avg) }, false},
			{func() error { return m.AllReduce(s, b, a, 4, fabric.I32, fabric.Sum) }, false},
			{func() error { return m.AllReduce(s, b, a, 4, fabric.F64, fabric.Sum) }, false},
			{func() error { return m.AllReduce(s, b, a, 4, fabric.BF16, fabric.Prod) }, true},
			{func() error { return m.Exchange(s, b, a, 4096, 1-r) }, true},
			{func() error { return m.Exchange(s, b, a, 4100, 1-r) }, false},
			{func() error { return m.AllGatherRows(s, b, a, 64, 16) }, false},
			{func() error { return m.SendRecv(s, a, 8, 1-r, b, 8, 1-r) }, false},
			{func() error { return m.Barrier(s) }, false},
		} {
			before := m.path.rest.Stats().Calls
			if err := c.queue(); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
			if err := m.wait(t.Context()); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
			if went := m.path.rest.Stats().Calls == before; went != c.mail {
				return fmt.Errorf("call %d: by the mailbox: %v; it should be %v", i, went, c.mail)
			}
		}
		return nil
	})
	require.Equal(t, make([]error, 2), errs)
	mailDone(t, ranks)
}

// The epochs of the group and of each pair go on over launches of a graph, with calls of no graph between them.
func TestCapturedMailboxCallsAreReplayed(t *testing.T) {
	const world, laps = 3, 2000
	w := hiptest.Start(t, hiptest.Settings{Devices: world})
	for name, change := range map[string]func(*verbstest.Fabric){"flags": nil, "immediates": func(f *verbstest.Fabric) { f.OutOfOrder(true) }} {
		t.Run(name, func(t *testing.T) {
			f := inMemory(t, verbstest.Switch(world, 1))
			if change != nil {
				change(f)
			}
			ranks := (&mailGroup{w: w, f: f, world: world, slot: 4096, timeout: 20 * time.Second}).open(t)
			times := laps
			if underRace {
				times /= 10
			}
			errs := onAll(world, func(r int) error { return replayMail(t, ranks[r], r, times) })
			for r, err := range errs {
				require.NoError(t, err, "rank %d", r)
			}
			mailDone(t, ranks)
		})
	}
}

// replayMail adds up: each lap all ranks sum what they have, and two of them swap what they got.
func replayMail(t *testing.T, m *mailRank, rank, laps int) error {
	const floats = 3
	sums, swapped := m.host(t, 4*floats), m.host(t, 4*floats)
	a, b := fabric.DevPtr(sums.Ptr()), fabric.DevPtr(swapped.Ptr())
	step := func() error {
		if rank != 1 {
			if err := m.Exchange(m.stream(), b, a, 4*floats, 2-rank); err != nil {
				return err
			}
		}
		return m.AllReduce(m.stream(), a, a, floats, fabric.F32, fabric.Avg)
	}
	put := func(v float32) {
		for i := range floats {
			binary.NativeEndian.PutUint32(sums.Bytes()[4*i:], math.Float32bits(v+float32(i)))
		}
	}
	plan, err := m.Capture(m.stream())
	if err != nil {
		return err
	}
	graph, err := m.graphed(step)
	if err != nil {
		return err
	}
	if err := plan.End(); err != nil {
		return err
	}
	const deep = 10
	for lap := 0; lap < laps; lap += deep {
		put(float32(rank * 10))
		for i := range deep {
			if i == 3 && rank == lap/deep%3 { // without a word to the others
				err = step()
			} else {
				err = graph.Launch()
			}
			if err != nil {
				return err
			}
		}
		if err := m.wait(t.Context()); err != nil {
			return fmt.Errorf("lap %d: %w", lap, err)
		}
		for i := range floats {
			if v := math.Float32frombits(binary.NativeEndian.Uint32(sums.Bytes()[4*i:])); v != 10+float32(i) {
				return fmt.Errorf("lap %d: the mean is %v", lap, v)
			}
		}
	}
	if target := 2 - rank; rank != 1 {
		if got := m.path.own.bell(target, bellEnded); got != uint64(laps) {
			return fmt.Errorf("%d calls of the pair", got)
		}
	}
	if got := m.path.own.bell(rank, bellEnded); got != uint64(laps)+1 {
		return fmt.Errorf("%d calls of the group", got)
	}
	if err := graph.Close(); err != nil {
		return err
	}
	return plan.Release()
}

// Two slots many times over: by flags, and by immediates, whose numbers have six bits.
func TestAMailboxSlotIsUsedAgainManyTimes(t *testing.T) {
	const each, launches = 256, 1<<8 + 2
	for name, change := range map[string]func(*verbstest.Fabric){"flags": nil, "immediates": func(f *verbstest.Fabric) { f.DenyOrder(true) }} {
		t.Run(name, func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 2})
			f := inMemory(t, verbstest.Switch(2, 1))
			if change != nil {
				change(f)
			}
			ranks := (&mailGroup{w: w, f: f, world: 2, slot: 4096, timeout: 20 * time.Second}).open(t)
			times := launches
			if underRace {
				times = 8
			}
			errs := onAll(2, func(r int) error { return lapMail(t, ranks[r], r, each, times) })
			for r, err := range errs {
				require.NoError(t, err, "rank %d", r)
			}
			mailDone(t, ranks)
		})
	}
}

// lapMail launches a graph of so many gathers, each of another place: what comes is of this launch.
func lapMail(t *testing.T, m *mailRank, rank, each, times int) error {
	in, out := m.host(t, 16*each), m.host(t, 32*each)
	plan, err := m.Capture(m.stream())
	if err != nil {
		return err
	}
	graph, err := m.graphed(func() error {
		for i := range each {
			if err := m.AllGather(m.stream(), fabric.DevPtr(out.Ptr())+fabric.DevPtr(32*i), fabric.DevPtr(in.Ptr())+fabric.DevPtr(16*i), 16); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := plan.End(); err != nil {
		return err
	}
	for lap := range times {
		for i := range each {
			binary.NativeEndian.PutUint64(in.Bytes()[16*i:], uint64(lap*each+i))
			binary.NativeEndian.PutUint64(in.Bytes()[16*i+8:], uint64(rank))
		}
		if err := graph.Launch(); err != nil {
			return err
		}
		if err := m.wait(t.Context()); err != nil {
			return err
		}
		for i := range 2 * each {
			got := out.Bytes()[16*i:]
			if binary.NativeEndian.Uint64(got) != uint64(lap*each+i/2) || binary.NativeEndian.Uint64(got[8:]) != uint64(i%2) {
				return fmt.Errorf("launch %d: gather %d brought %v of rank %d", lap, i/2, got[:16], i%2)
			}
		}
	}
	if err := graph.Close(); err != nil {
		return err
	}
	return plan.Release()
}
