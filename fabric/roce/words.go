package roce

import "fmt"

// maxListed keeps errors within what a vote passes on.
const maxListed = 280 // bytes

// listed joins texts while there is room.
func listed(texts []string) string { return listedIn(texts, ", ", maxListed) }

func listedIn(texts []string, separator string, room int) string {
	if len(texts) == 0 {
		return "none"
	}
	s := ""
	for i, t := range texts {
		if i > 0 && len(s)+len(separator)+len(t) > room {
			return fmt.Sprintf("%s%sand %d more", s, separator, len(texts)-i)
		}
		if i > 0 {
			s += separator
		}
		s += t
	}
	return s
}

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
