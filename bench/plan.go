package main

// What is compared, and the bars that the project set itself.
const (
	sendAhead = 256 << 10 // the floor's window, as ours bounds it by default on loopback
	floorBar  = 1.25
	peerBar   = 1.0
)

func comparisons(binary string) []comparison {
	small, large := []int{16, 4 << 10, 32 << 10}, []int{1 << 20, 4 << 20}
	every := append(append([]int{}, small...), large...)
	ops := []string{"exchange", "all-gather"}
	withSum := append(append([]string{}, ops...), "all-reduce")
	ours := func(world int, ops []string, sizes []int, iters int) *hipfabric {
		return &hipfabric{binary: binary, world: world, ops: ops, sizes: sizes, iters: iters}
	}
	rate := ours(2, []string{"send"}, []int{4 << 20}, 200)
	rate.rate = true
	return []comparison{
		{
			name: "floor", title: "raw spinning exchange", world: 2, ours: ours(2, ops, small, 2000),
			theirs: &floor{iters: 2000, sizes: small}, pairs: asExchange(ops, small), bars: bar(floorBar, ops, small),
		},
		{
			name: "window", title: "raw exchange, 256 KiB ahead", world: 2, ours: ours(2, ops, large, 200),
			theirs: &floor{window: sendAhead, iters: 200, sizes: large}, pairs: asExchange(ops, large),
		},
		{
			name: "openmpi", title: "Open MPI", world: 2, ours: ours(2, withSum, every, 300),
			theirs: &openmpi{world: 2, iters: 300, ops: "exchange,all-gather,all-reduce", sizes: every},
		},
		{
			name: "openmpi4", title: "Open MPI", world: 4, ours: ours(4, []string{"all-reduce"}, small[:1], 500),
			theirs: &openmpi{world: 4, iters: 500, ops: "all-reduce", sizes: small[:1]}, bars: bar(peerBar, []string{"all-reduce"}, small[:1]),
		},
		{
			name: "iperf3", title: "iperf3, one stream", world: 2, ours: rate, theirs: iperf3{},
			pairs: map[key]key{{"send", 4 << 20}: bulk}, rate: true,
		},
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
