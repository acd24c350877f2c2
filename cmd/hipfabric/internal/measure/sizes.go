package measure

import (
	"math"
	"strconv"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// MaxBytes is the most that a rank contributes to a measured call.
const MaxBytes = 1 << 30

// ParseSize reads bytes: a whole number, with K, M or G for powers of 1024, and B, iB or nothing behind it.
func ParseSize(text string) (int, error) {
	s := strings.ToUpper(strings.TrimSpace(text))
	s = strings.TrimSuffix(strings.TrimSuffix(s, "B"), "I")
	unit := 1
	if s != "" {
		switch s[len(s)-1] {
		case 'K':
			unit = 1 << 10
		case 'M':
			unit = 1 << 20
		case 'G':
			unit = 1 << 30
		}
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fabric.Invalidf("size %q is no number of bytes; write 4096, 4K, 32K, 1M or 1G", text)
	}
	if n > uint64(MaxBytes/unit) {
		return 0, fabric.Invalidf("size %s is above %d bytes (1G), the most that is measured", text, MaxBytes)
	}
	return int(n) * unit, nil
}

// Sweep lists the sizes from begin to end, each factor times the one before.
func Sweep(begin, end int, factor float64) ([]int, error) {
	if begin > end {
		return nil, fabric.Invalidf("the sizes begin at %d and end at %d; they must not shrink", begin, end)
	}
	if begin == 0 && end > 0 {
		return nil, fabric.Invalidf("the sizes begin at 0, and no factor of it reaches %d; begin at 1", end)
	}
	if math.IsNaN(factor) || factor <= 1 || factor > MaxBytes {
		return nil, fabric.Invalidf("factor %v is outside 1 (exclusive) to %d", factor, MaxBytes)
	}
	sizes := []int{begin}
	for n := begin; ; {
		n = max(n+1, int(math.Round(float64(n)*factor)))
		if n > end {
			return sizes, nil
		}
		if sizes = append(sizes, n); len(sizes) > maxSizes {
			return nil, fabric.Invalidf("%d to %d by %v are more than %d sizes; use a larger factor", begin, end, factor, maxSizes)
		}
	}
}

// elementSize is the bytes of one element of a dtype by its name.
func elementSize(name string) int {
	for _, dt := range fabric.DTypes() {
		if dt.String() == name {
			return dt.Size()
		}
	}
	return 1
}
