package fabrictest

// pairwise picks candidates, by index, so that any two levels of two factors that some candidate has together are
// together in one that is picked. All candidates have the same number of factors. It is greedy: each pick covers the
// most pairs not covered yet.
func pairwise(candidates [][]int) []int {
	left := map[levels]bool{}
	for _, c := range candidates {
		for p := range pairsOf(c) {
			left[p] = true
		}
	}
	var picked []int
	gain := make([]int, len(candidates)) // at most this many new pairs; it only shrinks
	for i, c := range candidates {
		gain[i] = len(c) * (len(c) - 1) / 2
	}
	for len(left) > 0 {
		best, most := -1, 0
		for i, c := range candidates {
			if gain[i] <= most {
				continue
			}
			gain[i] = 0
			for p := range pairsOf(c) {
				if left[p] {
					gain[i]++
				}
			}
			if gain[i] > most {
				best, most = i, gain[i]
			}
		}
		for p := range pairsOf(candidates[best]) {
			delete(left, p)
		}
		picked = append(picked, best)
	}
	return picked
}

// levels is level a of factor i beside level b of factor j.
type levels struct{ i, a, j, b int }

func pairsOf(c []int) func(yield func(levels) bool) {
	return func(yield func(levels) bool) {
		for j := range c {
			for i := range j {
				if !yield(levels{i, c[i], j, c[j]}) {
					return
				}
			}
		}
	}
}
