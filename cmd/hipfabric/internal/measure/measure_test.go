package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

func TestSizesAreBytesWithAUnit(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "16": 16, "4K": 4096, "4k": 4096, "4KiB": 4096, "4KB": 4096, "32kb": 32768, "1M": 1 << 20, "1G": 1 << 30, "8B": 8, " 7 ": 7} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "K", "-1", "1.5K", "4X", "K4", "2G", "99999999999999999999", "9223372036854775807K", "1 K B"} {
		_, err := ParseSize(text)
		require.ErrorIs(t, err, fabric.ErrInvalid, text)
		assert.ErrorContains(t, err, text)
	}
}

func TestASweepMultiplies(t *testing.T) {
	for _, c := range []struct {
		begin, end int
		factor     float64
		want       []int
		err        string
	}{
		{8, 64, 2, []int{8, 16, 32, 64}, ""},
		{8, 63, 2, []int{8, 16, 32}, ""},
		{8, 8, 2, []int{8}, ""},
		{0, 0, 2, []int{0}, ""},
		{1, 4, 1.1, []int{1, 2, 3, 4}, ""},
		{64, 8, 2, nil, "begin at 64 and end at 8"},
		{0, 8, 2, nil, "begin at 0"},
		{1, 8, 1, nil, "factor 1 is outside"},
		{1, 8, math.NaN(), nil, "factor NaN"},
		{1, 1 << 30, 1.0000001, nil, "more than 1000 sizes"},
	} {
		got, err := Sweep(c.begin, c.end, c.factor)
		if c.err == "" {
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			continue
		}
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, c.err)
	}
}

func TestAPercentileIsASampleThatEnoughAreNotAbove(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(i + 1)
	}
	for q, want := range map[float64]int64{0: 1, 0.5: 50, 0.501: 51, 0.9: 90, 0.99: 99, 0.999: 100, 1: 100} {
		assert.Equal(t, want, Percentile(hundred, q), "%v", q)
	}
	assert.EqualValues(t, 7, Percentile([]int64{7}, 0.5))
	assert.EqualValues(t, 1, Percentile([]int64{1, 2}, 0.5))
}

func TestBandwidthsAreThoseOfNCCLTests(t *testing.T) {
	for _, c := range []struct {
		op       fabric.Op
		alg, bus float64
	}{
		{fabric.AllReduce, 1, 1.5}, {fabric.ReduceScatter, 1, 0.75}, {fabric.AllGather, 4, 3}, {fabric.AllGatherV, 4, 3}, {fabric.AllToAll, 1, 0.75},
		{fabric.Broadcast, 1, 1}, {fabric.Exchange, 1, 1}, {fabric.SendRecv, 1, 1}, {fabric.Send, 1, 1},
	} {
		alg, bus := Bandwidth(c.op, 4, 1000, 1000)
		assert.InDelta(t, c.alg, alg, 1e-12, "%v", c.op)
		assert.InDelta(t, c.bus, bus, 1e-12, "%v", c.op)
	}
	alg, bus := Bandwidth(fabric.AllReduce, 1, 1000, 1000)
	assert.Equal(t, []float64{1, 0}, []float64{alg, bus}, "nothing leaves the only rank")
	alg, _ = Bandwidth(fabric.Barrier, 4, 0, 1000)
	assert.Zero(t, alg)
}

func TestEveryOperationIsRightOverTheOracle(t *testing.T) {
	for world := 1; world <= 4; world++ {
		groups := fabrictest.Groups(t, world)
		fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
			list := every(world, 7, []int{0, 1, 3, 1000, 10_000, 40_000})
			if testing.Short() || world > 2 {
				list = slices.DeleteFunc(list, func(s spec) bool { return s.bytes > 8192 })
			}
			_, err := runAll(Subject{Host: g.Host}, list, func(int, int) {}, func(int) []int { return []int{0, 1} })
			return err
		})
	}
}

func TestOneWrongElementIsFoundOnEveryRank(t *testing.T) {
	for _, op := range []fabric.Op{fabric.AllReduce, fabric.AllGather, fabric.AllGatherRows, fabric.AllToAllV, fabric.Broadcast, fabric.Exchange, fabric.Send} {
		groups := fabrictest.Groups(t, 2)
		fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
			b, err := newBench(Subject{Host: g.Host}, spec{op: op, bytes: 96, dtype: fabric.F32, reduce: fabric.Sum, seed: 1})
			if err != nil {
				return err
			}
			right := b.call
			b.call = func() error {
				err := right()
				if g.Rank() == 1 {
					b.out[len(b.out)-1] ^= 1
				}
				return err
			}
			wrong, err := b.checkAll()
			if err == nil && wrong != rounds {
				err = fmt.Errorf("%v: %d wrong elements are known at rank %d, and there are %d", op, wrong, g.Rank(), rounds)
			}
			return err
		})
	}
	require.ErrorIs(t, verdict(1), ErrWrong)
	require.NoError(t, verdict(0))
}

func TestARunReportsWhatWasMeasured(t *testing.T) {
	var out, lines, raw strings.Builder
	report := &Report{Table: &out, JSON: &lines, Raw: &raw}
	require.NoError(t, report.RawHeader())
	groups := fabrictest.Groups(t, 2)
	plan := Plan{Ops: []fabric.Op{fabric.AllReduce, fabric.Barrier, fabric.AllGather}, Sizes: []int{7, 64}, DType: fabric.BF16, Reduce: fabric.Max, Iters: 5, Warmup: 1, Check: true}
	fabrictest.Each(t, groups, func(g *fabrictest.Group) error { return Run(Subject{Kind: "memory", Host: g.Host}, plan, report.Add) })
	require.NoError(t, report.Flush())
	assert.Equal(t, 5, strings.Count(lines.String(), `{"schema":"hipfabric.perf/1","kind":"memory"`), lines.String())
	assert.Contains(t, lines.String(), `"op":"all-reduce","world":2,"bytes":6,"dtype":"bf16","redop":"max","in_place":false,"iters":5,"lanes":1,"min_us":`, "7 bytes round down to 3 elements")
	assert.Equal(t, 5, strings.Count(lines.String(), `"wrong":0}`), "and no copy_us, which nobody asked for")
	assert.Equal(t, 1+5*5, strings.Count(raw.String(), "\n"))
	assert.Contains(t, raw.String(), "all-gather,64,u8,none,4,")
	for _, want := range []string{"all-reduce, 2 ranks, memory, 5 iterations, rank 0's samples", "size (B)", "count", "type", "redop", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong", "p50", "p90", "p99", "p99.9", "max"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestInPlaceIsCheckedTimedAndNamed(t *testing.T) {
	for world := 1; world <= 3; world++ {
		var out, lines strings.Builder
		report := &Report{Table: &out, JSON: &lines}
		plan := Plan{Ops: []fabric.Op{fabric.AllGather, fabric.AllReduce}, Sizes: []int{0, 4, 4096, 100_000}, DType: fabric.F32, Reduce: fabric.Sum, Iters: 3, Check: true, InPlace: true, Copy: true}
		require.NoError(t, plan.Validate(world))
		fabrictest.Each(t, fabrictest.Groups(t, world), func(g *fabrictest.Group) error { return Run(Subject{Kind: "memory", Host: g.Host}, plan, report.Add) })
		require.NoError(t, report.Flush())
		assert.Equal(t, 8, strings.Count(lines.String(), `"in_place":true,"iters":3,`))
		assert.Equal(t, 8, strings.Count(lines.String(), `"wrong":0,"copy_us":`))
		assert.Contains(t, out.String(), fmt.Sprintf("all-gather in place, %d ranks", world))
		assert.Contains(t, out.String(), "all-reduce in place")
	}
}

func TestInPlaceTheInputIsAPartOfTheOutput(t *testing.T) {
	fabrictest.Each(t, fabrictest.Groups(t, 2), func(g *fabrictest.Group) error {
		for op, at := range map[fabric.Op]int{fabric.AllGather: 96 * g.Rank(), fabric.AllReduce: 0} {
			b, err := newBench(Subject{Host: g.Host}, spec{op: op, bytes: 96, dtype: fabric.F32, reduce: fabric.Sum, inPlace: true})
			if err != nil {
				return err
			}
			if &b.in[0] != &b.out[at] || len(b.in) != 96 {
				return fmt.Errorf("%v: rank %d's %d bytes of input are not at %d of the output", op, g.Rank(), len(b.in), at)
			}
		}
		return nil
	})
}

func TestUncheckedIsNotZeroWrong(t *testing.T) {
	var out, lines strings.Builder
	report := &Report{Table: &out, JSON: &lines}
	groups := fabrictest.Groups(t, 1)
	require.NoError(t, Run(Subject{Kind: "memory", Host: groups[0].Host}, Plan{Ops: []fabric.Op{fabric.AllGather}, Sizes: []int{1}, Iters: 1}, report.Add))
	require.NoError(t, report.Flush())
	assert.Contains(t, lines.String(), `"wrong":null}`)
	assert.Contains(t, out.String(), "N/A")
}

func TestSamplingAllocatesNothing(t *testing.T) {
	groups := fabrictest.Groups(t, 1)
	b, err := newBench(Subject{Host: groups[0].Host}, spec{op: fabric.Barrier, dtype: fabric.U8})
	require.NoError(t, err)
	b.call = func() error { return nil }
	samples := make([]int64, 100)
	assert.Zero(t, testing.AllocsPerRun(10, func() { assert.NoError(t, b.sample(3, timings{total: samples})) }))
}

func TestTheSuiteHasTheCallsItPromises(t *testing.T) {
	count := map[string]int{}
	least, most := map[string]int{}, map[string]int{}
	for _, s := range shuffled(2, 3) {
		key := s.op.String()
		if s.op.Reduces() {
			key += s.dtype.String()
		}
		if count[key]++; count[key] == 1 {
			least[key] = s.bytes
		}
		least[key], most[key] = min(least[key], s.bytes), max(most[key], s.bytes)
	}
	assert.Equal(t, map[string]int{"all-gather": 400, "all-reducef32": 398, "all-reducebf16": 398, "exchange": 100, "send": 100, "send-recv": 100, "all-gather-v": 100}, count)
	assert.Equal(t, []int{1, 4 << 20}, []int{least["all-gather"], most["all-gather"]})
	assert.Equal(t, shuffled(2, 3), shuffled(2, 3), "the ranks must agree")
	assert.NotEqual(t, shuffled(2, 3), shuffled(2, 4))
}

func TestOrdinaryNumbersAreOrdinary(t *testing.T) {
	b := make([]byte, 4096)
	for _, dt := range []fabric.DType{fabric.F16, fabric.BF16, fabric.F32} {
		input(b, 1, 0, 1, dt)
		for at := 0; at < len(b); at += dt.Size() {
			v := math.Abs(float64(widen(b[at:], dt)))
			require.True(t, v >= 1.0/8 && v < 2, "%v: %v", dt, v)
		}
	}
}

func TestThePlanOfRankZeroReachesAll(t *testing.T) {
	groups := fabrictest.Groups(t, 3)
	plan := Plan{Mode: Suite, Ops: []fabric.Op{fabric.Send}, Sizes: []int{1, 2}, DType: fabric.F64, Reduce: fabric.Avg, Iters: 3, Warmup: 4, Check: true, Seed: math.MaxUint64, InPlace: true, Copy: true, KillAfterNs: 5, Victim: 6}
	fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
		mine := Plan{Iters: g.Rank()}
		if g.Rank() == 0 {
			mine = plan
		}
		got, err := Share(context.Background(), g.Control, g.Rank(), mine)
		if err == nil && !assert.ObjectsAreEqual(plan, got) {
			err = fmt.Errorf("rank %d got %+v", g.Rank(), got)
		}
		return err
	})
}

func TestBadPlansAreRefused(t *testing.T) {
	good := Plan{Ops: []fabric.Op{fabric.AllReduce, fabric.Exchange}, Sizes: []int{1}, DType: fabric.F32, Reduce: fabric.Avg, Iters: 1}
	require.NoError(t, good.Validate(2))
	for want, change := range map[string]func(p *Plan) int{
		"iters is 0":                    func(p *Plan) int { p.Iters = 0; return 2 },
		"warmup is -1":                  func(p *Plan) int { p.Warmup = -1; return 2 },
		"exchange needs two ranks":      func(*Plan) int { return 1 },
		"avg takes floating-point":      func(p *Plan) int { p.DType = fabric.I32; return 2 },
		"the rank to kill is 2":         func(p *Plan) int { p.Mode, p.Victim = Kill, 2; return 2 },
		"1001 sizes are more than":      func(p *Plan) int { p.Sizes = make([]int, 1001); return 2 },
		"exchange has no form in place": func(p *Plan) int { p.InPlace = true; return 2 },
		"iters is 10000001, outside ":   func(p *Plan) int { p.Iters = maxIters + 1; return 2 },
	} {
		p := good
		world := change(&p)
		err := p.Validate(world)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, want)
	}
}

func TestAReceiptNamesRankVictimTimeAndCause(t *testing.T) {
	r := Receipt{Rank: 0, Victim: 1, Calls: 3, After: 1500 * time.Microsecond, Err: errors.New("gone")}
	assert.Equal(t, "receipt: rank 0 lost rank 1 after 3 calls and knew it in 1.5 ms: gone", r.String())
}
