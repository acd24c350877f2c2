package launch

import (
	"fmt"
	"strings"
)

// suggest says which known variable was probably meant, or lists them all.
func suggest(name string) string {
	best, distance := "", len(name)
	for _, k := range known() {
		if d := edits(name, k); d < distance {
			best, distance = k, d
		}
	}
	if distance <= 3 {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "unset it; these are: " + strings.Join(known(), ", ")
}

// edits is the Levenshtein distance of two ASCII names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
