package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const samplePerf = `{"schema":"hipfabric.perf/1","environment":{"mtu":65536}}
{"schema":"hipfabric.perf/1","kind":"tcp","op":"exchange","world":2,"bytes":16,"dtype":"f32","iters":500,"lanes":1,"min_us":4.1,"p50_us":4.6,"p90_us":5,"p99_us":7,"p999_us":9,"max_us":20,"algbw_GBps":0.003,"busbw_GBps":0.003,"wrong":0}
{"schema":"hipfabric.perf/2","kind":"tcp","op":"exchange","world":2,"bytes":32,"p50_us":1}
a line of no JSON
{"schema":"hipfabric.perf/1","kind":"tcp","op":"all-gather","world":2,"bytes":4096,"iters":500,"p50_us":6.5,"algbw_GBps":1.5,"wrong":0,"field_of_a_later_kind":7}
`

func TestPerfLinesAreReadAndOthersPassedOver(t *testing.T) {
	got, err := (&perf{world: 2}).parse([]byte(samplePerf))
	require.NoError(t, err)
	assert.Equal(t, results{{"exchange", 16}: 4.6, {"all-gather", 4096}: 6.5}, got)
	got, err = (&perf{world: 2, rate: true}).parse([]byte(samplePerf))
	require.NoError(t, err)
	assert.InDelta(t, 1.5, got[key{"all-gather", 4096}], 0)
}

func TestFiguresOfWrongResultsAreRefused(t *testing.T) {
	for want, p := range map[string]*perf{
		"2 ranks instead of 4":                    {world: 4},
		"1 lanes instead of 2":                    {world: 2, lanes: 2},
		"in place: false instead of true":         {world: 2, inPlace: true},
		"no copy_us for exchange of 16 bytes":     {world: 2, copy: true},
		"3 wrong results in exchange of 16 bytes": {world: 3}, // whatever else is wrong
	} {
		text := samplePerf
		if p.world == 3 {
			text = strings.Replace(text, `"wrong":0`, `"wrong":3`, 1)
		}
		_, err := p.parse([]byte(text))
		require.ErrorContains(t, err, want)
	}
	_, err := (&perf{world: 2}).parse(nil)
	require.ErrorContains(t, err, "no hipfabric.perf/1 line")
}

func TestCallsInPlaceAreKeysOfTheirOwnAndACopyIsAdded(t *testing.T) {
	const line = `{"schema":"hipfabric.perf/1","op":"all-gather","world":2,"bytes":1048576,"in_place":true,"lanes":1,"p50_us":300,"wrong":0,"copy_us":50.5}`
	got, err := (&perf{world: 2, inPlace: true}).parse([]byte(line))
	require.NoError(t, err)
	assert.Equal(t, results{{"all-gather in place", 1 << 20}: 300}, got)
	got, err = (&perf{world: 2, inPlace: true, copy: true}).parse([]byte(line))
	require.NoError(t, err)
	assert.Equal(t, results{{"all-gather in place", 1 << 20}: 350.5}, got)
	args := strings.Join((&perf{world: 2, inPlace: true, copy: true, lanes: 4, window: -1}).args(), " ")
	assert.Contains(t, args, "--lanes 4 --window -1 --in-place --copy")
}

// scripted notes each measurement and gives the next figure for one key.
type scripted struct {
	name    string
	log     *[]string
	figures []float64
	key     key
}

func (s *scripted) prepare(context.Context, string) error { return nil }

func (s *scripted) measure(context.Context) (results, error) {
	*s.log = append(*s.log, s.name)
	figure := s.figures[0]
	s.figures = s.figures[1:]
	return results{s.key: figure}, nil
}

func TestRoundsRunABBAAndTheMedianOfRatiosIsTaken(t *testing.T) {
	var log []string
	ours, theirs := key{"all-gather", 16}, key{"exchange", 16}
	c := comparison{
		ours:   &scripted{"A", &log, []float64{10, 10, 20, 20, 9, 11}, ours},
		theirs: &scripted{"B", &log, []float64{8, 12, 10, 10, 5, 5}, theirs},
		pairs:  map[key]key{ours: theirs}, bars: map[key]float64{ours: 1.25},
	}
	rows, err := c.run(t.Context(), 3)
	require.NoError(t, err)
	assert.Equal(t, "ABBAABBAABBA", strings.Join(log, ""))
	require.Len(t, rows, 1)
	assert.InDelta(t, 2.0, rows[0].ratio, 1e-9) // of 1, 2 and 2
	assert.InDelta(t, 1.0, rows[0].low, 1e-9)
	assert.InDelta(t, 2.0, rows[0].high, 1e-9)
	assert.InDelta(t, 10.5, rows[0].ours, 1e-9)
	assert.Equal(t, "1.25 MISSED", verdict(rows[0]))
}

func TestAMissingFigureIsAnErrorNotAZero(t *testing.T) {
	k, other := key{"exchange", 16}, key{"exchange", 32}
	c := comparison{}
	_, err := c.rows([][4]results{{{k: 1}, {other: 1}, {other: 1}, {k: 1}}})
	require.ErrorContains(t, err, "no figure for exchange of 16 bytes")
}

func TestPeersOutputIsRead(t *testing.T) {
	got, err := parseLines([]byte("exchange 16 4.04 5.14\nall-reduce 32768 29.25 30.97\n"))
	require.NoError(t, err)
	assert.Equal(t, results{{"exchange", 16}: 4.04, {"all-reduce", 32768}: 29.25}, got)
	_, err = parseLines([]byte("mpirun: warning\n"))
	require.ErrorContains(t, err, "expected OP BYTES P50 P90")

	got, err = parseIperf3([]byte(`{"end":{"sum_received":{"bits_per_second":24e9}}}`))
	require.NoError(t, err)
	assert.Equal(t, results{bulk: 3}, got)
	_, err = parseIperf3([]byte(`{"error":"unable to connect"}`))
	require.Error(t, err)
}

func TestTheTableNamesTheBarAndWhatIsAbsent(t *testing.T) {
	c := comparisons("x")[0]
	k := key{"exchange", 32 << 10}
	var out strings.Builder
	writeReport(&out, "somewhere", []row{{c: &c, key: k, ours: 20, theirs: 18, ratio: 1.11, low: 1.1, high: 1.2}}, []string{"iperf3: iperf3 is not installed: apt-get install iperf3"})
	assert.Contains(t, out.String(), "| raw spinning exchange | exchange | 2 | 32 KiB | 20 us | 18 us | 1.11 (1.10 to 1.20) | 1.15 met |")
	assert.Contains(t, out.String(), "PASS: 1 of 1 bars met.")
	assert.Contains(t, out.String(), "Not measured: iperf3: iperf3 is not installed: apt-get install iperf3")
}

// Each bar of the plan, met by a ratio at it and missed by one beyond it.
func TestEveryBarIsJudged(t *testing.T) {
	want := map[string]string{}
	add := func(name string, bar string, calls ...string) {
		for _, call := range calls {
			want[name+" "+call] = bar
		}
	}
	add("floor", "1.15", "exchange 16 B", "exchange 4 KiB", "exchange 32 KiB", "all-gather 16 B", "all-gather 4 KiB", "all-gather 32 KiB")
	add("window", "1.15", "exchange 1 MiB", "exchange 4 MiB")
	add("gather", "1.10", "all-gather in place 1 MiB", "all-gather in place 4 MiB", "all-gather 1 MiB", "all-gather 4 MiB")
	if len(devices()) > 0 {
		add("staged", "1.50", "queueing, words gate 16 B", "staged beyond tcp, zero copy 16 B")
		add("staged", "4.00", "staged beyond tcp 16 B")
		add("staged", "1.30", "staged exchange, modelled copies 4 MiB")
		add("staged", "1.10", "staged exchange, zero copy 4 MiB")
	}
	add("openmpi", "0.60", "all-reduce 16 B", "all-reduce 4 MiB")
	add("openmpi4", "1.00", "all-reduce 16 B", "all-reduce 32 KiB")
	add("sums", "at least 0.50", "sum f32 4 MiB", "sum f32 in place 4 MiB", "sum bf16 4 MiB", "sum bf16 in place 4 MiB")
	add("idle", "1.00", "idle group -")
	add("crossing", "1.30", "write and wait, one crossing -")

	got := map[string]string{}
	for _, c := range comparisons("x") {
		for k, bar := range c.bars {
			beyond := bar * 1.01
			if c.atLeast {
				beyond = bar * 0.99
			}
			at, past := row{c: &c, key: k, ratio: bar}, row{c: &c, key: k, ratio: beyond}
			text, met := strings.CutSuffix(verdict(at), " met")
			assert.True(t, met, "%s: %s", c.name, verdict(at))
			got[c.name+" "+k.op+" "+size(k.bytes)] = text
			assert.Equal(t, text+" MISSED", verdict(past), c.name)
			said := summary([]row{at, past})
			assert.Contains(t, said, "MISS: 1 of 2 bars met; missed: "+k.op+" of "+size(k.bytes)+" against "+c.title)
		}
	}
	assert.Equal(t, want, got)
	assert.Empty(t, summary([]row{{c: &comparison{}}}), "no bar, no verdict")
}

// together is a pairing of one key.
type together struct {
	calls        int
	ours, theirs float64
	k            key
}

func (p *together) prepare(context.Context, string) error { return nil }

func (p *together) measureBoth(context.Context) (ours, theirs results, err error) {
	p.calls++
	return results{p.k: p.ours * float64(p.calls)}, results{p.k: p.theirs}, nil
}

func TestAPairingMeasuresBothSidesOnceARound(t *testing.T) {
	k := key{"sum f32", 4 << 20}
	p := &together{ours: 1, theirs: 5, k: k}
	c := comparison{both: p, bars: map[key]float64{k: 0.5}, atLeast: true}
	require.NoError(t, c.prepare(t.Context(), ""))
	rows, err := c.run(t.Context(), 3)
	require.NoError(t, err)
	assert.Equal(t, 3, p.calls)
	require.Len(t, rows, 1)
	assert.InDelta(t, 0.4, rows[0].ratio, 1e-9) // of 0.2, 0.4 and 0.6
	assert.Equal(t, "at least 0.50 MISSED", verdict(rows[0]))
}

func TestTheBenchmarkOfSumsIsRead(t *testing.T) {
	ours, theirs, err := parseSums([]byte(`goos: linux
BenchmarkSum/vectors/f32/4096KiB/world=2/apart-2         	      20	         4.500 GB/s	         0.5000 of-copy
BenchmarkSum/vectors/bf16/4096KiB/world=2/inplace        	      20	         0 ns/op	         6.000 GB/s	         0.7500 of-copy
PASS
`))
	require.NoError(t, err)
	f32, bf16 := key{"sum f32", 4 << 20}, key{"sum bf16 in place", 4 << 20}
	assert.Equal(t, results{f32: 4.5, bf16: 6}, ours)
	assert.Equal(t, results{f32: 9, bf16: 8}, theirs)
	for text, want := range map[string]string{
		"PASS\n": "no benchmark of",
		"BenchmarkSum/vectors/f32/4096KiB/world=2/apart-2 20 4.5 GB/s\n":                "expected GB/s and of-copy",
		"BenchmarkSum/f32/4096KiB-2 20 4.5 GB/s 0.5 of-copy\n":                          "expected BenchmarkSum/WAY",
		"BenchmarkSum/vectors/f32/4MiB/world=2/apart-2 20 4.5 GB/s 0.5 of-copy\n":       "4MiB",
		"BenchmarkSum/vectors/f32/4096KiB/world=2/apart-2 20 fast GB/s 0.5 of-copy\n":   "fast",
		"BenchmarkSum/vectors/f32/4096KiB/world=2/apart-2 20 4.5 GB/s 0.0000 of-copy\n": "expected GB/s and of-copy",
	} {
		_, _, err := parseSums([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestTheSumsBenchmarkHasTheBarsKeys(t *testing.T) {
	s := &sums{rounds: 1}
	if err := s.prepare(t.Context(), t.TempDir()); err != nil {
		t.Skip(err)
	}
	ours, _, err := s.measureBoth(t.Context())
	require.NoError(t, err)
	for _, c := range comparisons("x") {
		for k := range c.bars {
			if c.name == "sums" {
				assert.Contains(t, ours, k)
			}
		}
	}
}

func TestAnIdleGroupIsMeasured(t *testing.T) {
	i := &idle{world: 2, lanes: 2, over: 200 * time.Millisecond}
	if err := i.prepare(t.Context(), t.TempDir()); err != nil {
		t.Skip(err)
	}
	ours, most, err := i.measureBoth(t.Context())
	require.NoError(t, err)
	assert.Equal(t, results{resting: 2}, most)
	assert.Positive(t, ours[resting])
	assert.Less(t, ours[resting], 20.0)
	_, _, err = (&idle{world: 2, over: time.Hour, dir: t.TempDir()}).measureBoth(canceled(t))
	require.ErrorIs(t, err, context.Canceled)
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestANameChoosesAllOfItsComparisons(t *testing.T) {
	chosen, err := choose(comparisons("x"), "gather,idle")
	require.NoError(t, err)
	var names []string
	for _, c := range chosen {
		names = append(names, c.name)
	}
	assert.Equal(t, []string{"gather", "gather", "idle"}, names)
}

func TestTheBusyShareLeavesIdleAndWaitingOut(t *testing.T) {
	busy, all, err := parseStat("cpu  10 20 30 400 50 6 7 8 9 9")
	require.NoError(t, err)
	assert.EqualValues(t, 81, busy)
	assert.EqualValues(t, 531, all)
	_, _, err = parseStat("intr 1 2 3 4 5 6")
	assert.Error(t, err)
}

func TestWrongUseIsToldWithWhatToDo(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "hipfabric")
	code, err := bench(t.Context(), []string{"-ours", binary}, io.Discard, io.Discard)
	assert.Equal(t, 3, code)
	require.ErrorContains(t, err, "make build")
	require.NoError(t, os.WriteFile(binary, nil, 0o700))
	code, err = bench(t.Context(), []string{"-ours", binary, "-only", "gloo"}, io.Discard, io.Discard)
	assert.Equal(t, 2, code)
	require.ErrorContains(t, err, "there are floor, window, gather, staged, openmpi, openmpi4, sums, idle, crossing, lanes, iperf3")
	code, err = bench(t.Context(), []string{"-rounds", "0"}, io.Discard, io.Discard)
	assert.Equal(t, 2, code)
	require.ErrorContains(t, err, "at least 1")
}

func TestTheFloorProgramMeasures(t *testing.T) {
	f := &floor{iters: 20, window: 4096, sizes: []int{1, 16, 64 << 10}}
	if err := f.prepare(t.Context(), t.TempDir()); err != nil {
		t.Skip(err)
	}
	got, err := f.measure(t.Context())
	require.NoError(t, err)
	assert.Len(t, got, 3)
	assert.Positive(t, got[key{"exchange", 64 << 10}])
}

func TestTheCrossingsAreRead(t *testing.T) {
	ours, theirs, err := parseCrossing([]byte("goos: linux\nBenchmarkCrossing/bare-2   \t20349801\t 50.00 ns/op\t 0 B/op\nBenchmarkCrossing/write+wait-2 \t13645963\t 60.00 ns/op\t 0 B/op\nPASS\n"))
	require.NoError(t, err)
	assert.Equal(t, results{crossed: 60}, ours)
	assert.Equal(t, results{crossed: 50}, theirs)
	_, _, err = parseCrossing([]byte("BenchmarkCrossing/bare-2 \t1\t 50.00 ns/op\n"))
	assert.ErrorContains(t, err, "write+wait")
}
