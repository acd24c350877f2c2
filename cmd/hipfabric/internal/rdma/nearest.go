package rdma

// nearest is the name that was probably meant; "" where none is close.
func nearest(name string, known []string) string {
	best, distance := "", len(name)/3+2
	for _, k := range known {
		if d := edits(name, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two names.
func edits(a, b string) int {
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := []int{i + 1}
		for j := range len(b) {
			d := min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				d = min(d, last[j])
			} else {
				d = min(d, last[j]+1)
			}
			row = append(row, d)
		}
		last = row
	}
	return last[len(b)]
}
