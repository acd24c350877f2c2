package main

import "time"

// What is compared, and the bars that the project set itself.
const (
	sendAhead   = 256 << 10 // the floor's window, as ours bounds it by default on loopback
	floorBar    = 1.15      // calls against the bare sockets
	gatherBar   = 1.1       // an all-gather against an exchange
	openmpiBar  = 0.6       // all-reduce of two ranks
	openmpi4Bar = 1.0       // all-reduce of more ranks than cores
	sumBar      = 0.5       // at least this of the rate of a copy
	idleBar     = 1.0       // of idleShare

	idleShare = 2 // percent of a core
)

var small, large = []int{16, 4 << 10, 32 << 10}, []int{1 << 20, 4 << 20}

func comparisons(binary string) []comparison {
	var all []comparison
	for _, some := range [][]comparison{floors(binary), gathers(binary), devices(), mpis(binary), alone(), {crossings()}, lanes(binary), {stream(binary)}} {
		all = append(all, some...)
	}
	return all
}

func floors(binary string) []comparison {
	ops := []string{"exchange", "all-gather"}
	return []comparison{
		{
			name: "floor", title: "raw spinning exchange", world: 2, ours: &perf{binary: binary, world: 2, ops: ops, sizes: small, iters: 2000},
			theirs: &floor{iters: 2000, sizes: small}, pairs: asExchange(ops, small), bars: bar(floorBar, ops, small),
		},
		{
			name: "window", title: "raw exchange, 256 KiB ahead", world: 2, ours: &perf{binary: binary, world: 2, ops: ops[:1], sizes: large, iters: 200},
			theirs: &floor{window: sendAhead, iters: 200, sizes: large}, bars: bar(floorBar, ops[:1], large),
		},
	}
}

// gathers hold ours against ours: what a gather takes beyond the bytes that cross, and beyond its own block's copy.
func gathers(binary string) []comparison {
	one := func(op string, inPlace, copy bool) *perf {
		return &perf{binary: binary, world: 2, ops: []string{op}, sizes: large, iters: 200, inPlace: inPlace, copy: copy}
	}
	apart, within := []string{"all-gather"}, []string{"all-gather" + inPlace}
	return []comparison{
		{
			name: "gather", title: "ours: exchange", world: 2, ours: one("all-gather", true, false), theirs: one("exchange", false, false),
			pairs: asExchange(within, large), bars: bar(gatherBar, within, large),
		},
		{
			name: "gather", title: "ours: exchange + copy", world: 2, ours: one("all-gather", false, false), theirs: one("exchange", false, true),
			pairs: asExchange(apart, large), bars: bar(gatherBar, apart, large),
		},
	}
}

func mpis(binary string) []comparison {
	ops, sum := []string{"exchange", "all-gather", "all-reduce"}, []string{"all-reduce"}
	one := func(name string, world int, ops []string, sizes []int, iters int, bars map[key]float64) comparison {
		return comparison{
			name: name, title: "Open MPI", world: world, ours: &perf{binary: binary, world: world, ops: ops, sizes: sizes, iters: iters},
			theirs: &openmpi{world: world, iters: iters, ops: ops, sizes: sizes}, bars: bars,
		}
	}
	ends := []int{small[0], small[len(small)-1]}
	return []comparison{
		one("openmpi", 2, ops, small, 2000, bar(openmpiBar, sum, small[:1])),
		one("openmpi", 2, ops, large, 200, bar(openmpiBar, sum, large[1:])),
		one("openmpi4", 4, sum, ends, 500, bar(openmpi4Bar, sum, ends)),
	}
}

// alone are bars that ours has of its own.
func alone() []comparison {
	ops := []string{"sum f32", "sum f32" + inPlace, "sum bf16", "sum bf16" + inPlace}
	return []comparison{
		{name: "sums", title: "a copy", world: 2, both: &sums{rounds: 100}, bars: bar(sumBar, ops, large[1:]), unit: "GB/s", atLeast: true},
		{name: "idle", title: "2% of a core", world: 2, both: &idle{world: 2, lanes: 4, over: 3 * time.Second}, bars: map[key]float64{resting: idleBar}, unit: "%"},
	}
}

// lanes and the bound on send-ahead are for information: within a host more of the former rarely help, and the latter's
// default is what this measures.
func lanes(binary string) []comparison {
	ahead := func(bound int) *perf {
		return &perf{binary: binary, world: 2, ops: []string{"exchange"}, sizes: large, iters: 200, window: bound}
	}
	some := func(n int) *perf {
		return &perf{binary: binary, world: 2, ops: []string{"exchange"}, sizes: []int{small[0], large[0]}, iters: 500, lanes: n}
	}
	return []comparison{
		{name: "lanes", title: "ours: 1 lane instead of 2", world: 2, ours: some(2), theirs: some(1)},
		{name: "lanes", title: "ours: 1 lane instead of 4", world: 2, ours: some(4), theirs: some(1)},
		{name: "lanes", title: "ours: no bound on send-ahead", world: 2, ours: ahead(0), theirs: ahead(-1)},
	}
}

func stream(binary string) comparison {
	ours := &perf{binary: binary, world: 2, ops: []string{"send"}, sizes: large[1:], iters: 200, rate: true}
	return comparison{
		name: "iperf3", title: "iperf3, one stream", world: 2, ours: ours, theirs: iperf3{},
		pairs: map[key]key{{"send", large[1]}: bulk}, unit: "GB/s", atLeast: true,
	}
}

// asExchange pairs each operation with an exchange of the same bytes, which moves as much.
func asExchange(ops []string, sizes []int) map[key]key {
	pairs := map[key]key{}
	for _, op := range ops {
		for _, n := range sizes {
			pairs[key{op, n}] = key{"exchange", n}
		}
	}
	return pairs
}

func bar(ratio float64, ops []string, sizes []int) map[key]float64 {
	bars := map[key]float64{}
	for k := range asExchange(ops, sizes) {
		bars[k] = ratio
	}
	return bars
}
