package measure

import (
	"math"
	"math/rand/v2"

	"github.com/hipfabric/hipfabric/fabric"
)

// Tally is what a check of many calls came to.
type Tally struct {
	What  string // "all-gather"
	Calls int
	Wrong int64 // elements, over all ranks
}

// RunSuite makes 400 gathers of 1 B to 4 MiB, 796 sums of f32 and bf16, 100 exchanges, 100 sends and receives, 100 ring
// shifts and 100 variable gathers, in an order and of sizes that the plan's seed gives, and checks each, one on any bits and
// the next on ordinary numbers. tell hears how many are
// done of how many. ErrWrong says on every rank that one was not right.
func RunSuite(on Subject, p Plan, tell func(done, total int)) ([]Tally, error) {
	return runAll(on, shuffled(on.Host.World(), p.Seed), tell, func(i int) []int { return []int{i % 2} })
}

// shuffled lists the suite's calls, the same on every rank.
func shuffled(world int, seed uint64) []spec {
	source := rand.New(rand.NewPCG(seed, 0))
	var list []spec
	add := func(n int, op fabric.Op, least, most int, dt fabric.DType) {
		if op.Class() == fabric.Pair && world < 2 {
			return
		}
		for i := range n {
			s := spec{op: op, bytes: between(source, least, most), dtype: dt, reduce: fabric.Sum, seed: source.Uint64()}
			switch i { // the bounds themselves are always there
			case 0:
				s.bytes = least
			case 1:
				s.bytes = most
			}
			list = append(list, s)
		}
	}
	add(400, fabric.AllGather, 1, 4<<20, fabric.U8)
	add(398, fabric.AllReduce, 4, 1<<20, fabric.F32)
	add(398, fabric.AllReduce, 2, 1<<20, fabric.BF16)
	add(100, fabric.Exchange, 1, 4<<20, fabric.U8)
	add(100, fabric.Send, 1, 1<<20, fabric.U8)
	add(100, fabric.SendRecv, 1, 1<<20, fabric.U8)
	add(100, fabric.AllGatherV, 1, 1<<20, fabric.U8)
	source.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// between draws a size, each power of two as likely as another.
func between(source *rand.Rand, least, most int) int {
	low, high := math.Log2(float64(least)), math.Log2(float64(most))
	return int(math.Exp2(low + source.Float64()*(high-low)))
}

// RunEvery makes every operation, with every dtype and reduction that it takes, at sizes around what the path treats
// differently, and checks each on any bits and on ordinary numbers. tell hears as RunSuite's does.
func RunEvery(on Subject, p Plan, tell func(done, total int)) ([]Tally, error) {
	elements := []int{0, 1, 3, 1000, 10_000, 40_000}
	if on.Device != nil { // its host path has been through the others
		elements = []int{0, 3, 10_000}
	}
	return runAll(on, every(on.Host.World(), p.Seed, elements), tell, func(int) []int { return []int{0, 1} })
}

func every(world int, seed uint64, sizes []int) []spec {
	var list []spec
	for _, op := range fabric.Ops() {
		if op == fabric.Recv || op.Class() == fabric.Pair && world < 2 {
			continue // a Send is met by a Recv
		}
		for _, dt := range fabric.DTypes() {
			if !op.Reduces() && dt != fabric.U8 {
				continue
			}
			for _, r := range fabric.ReduceOps() {
				if !op.Reduces() && r != fabric.Sum || !r.Takes(dt) {
					continue
				}
				for _, elements := range sizes {
					bytes := elements * dt.Size()
					if op == fabric.ReduceScatter {
						bytes *= world
					}
					list = append(list, spec{op: op, bytes: bytes, dtype: dt, reduce: r, seed: seed})
				}
			}
		}
	}
	return list
}

// runAll checks each spec in the rounds that are its own, then meets the other ranks to sum up what was wrong.
func runAll(on Subject, list []spec, tell func(done, total int), rounds func(i int) []int) ([]Tally, error) {
	var tallies []Tally
	at := map[fabric.Op]int{}
	done, all := 0, 0
	for n := range list {
		all += len(rounds(n))
	}
	for n, s := range list {
		b, err := newBench(on, s)
		if err != nil {
			return nil, err
		}
		i, seen := at[s.op]
		if !seen {
			i = len(tallies)
			at[s.op] = i
			tallies = append(tallies, Tally{What: s.op.String()})
		}
		for _, round := range rounds(n) {
			wrong, err := b.check(round)
			if err != nil {
				return nil, err
			}
			tallies[i].Calls++
			tallies[i].Wrong += int64(wrong)
			done++
			tell(done, all)
		}
		if err := b.close(); err != nil {
			return nil, err
		}
	}
	var bad int64
	for i := range tallies {
		wrong, err := total(on.Host, tallies[i].Wrong)
		if err != nil {
			return nil, err
		}
		tallies[i].Wrong = wrong
		bad += wrong
	}
	return tallies, verdict(bad)
}
