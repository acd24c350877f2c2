package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	got, err := parsePerf([]byte(samplePerf), 2, false)
	require.NoError(t, err)
	assert.Equal(t, results{{"exchange", 16}: 4.6, {"all-gather", 4096}: 6.5}, got)
	got, err = parsePerf([]byte(samplePerf), 2, true)
	require.NoError(t, err)
	assert.InDelta(t, 1.5, got[key{"all-gather", 4096}], 0)
}

func TestFiguresOfWrongResultsAreRefused(t *testing.T) {
	_, err := parsePerf([]byte(strings.Replace(samplePerf, `"wrong":0`, `"wrong":3`, 1)), 2, false)
	require.ErrorContains(t, err, "3 wrong results in exchange of 16 bytes")
	_, err = parsePerf([]byte(samplePerf), 4, false)
	require.ErrorContains(t, err, "2 ranks instead of 4")
	_, err = parsePerf(nil, 2, false)
	require.ErrorContains(t, err, "no hipfabric.perf/1 line")
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
	assert.Contains(t, out.String(), "| raw spinning exchange | exchange | 2 | 32 KiB | 20 us | 18 us | 1.11 (1.10 to 1.20) | 1.25 met |")
	assert.Contains(t, out.String(), "Not measured: iperf3: iperf3 is not installed: apt-get install iperf3")
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
	require.ErrorContains(t, err, "there are floor, window, openmpi, openmpi4, iperf3")
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
