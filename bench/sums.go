package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	sumsPackage = "github.com/hipfabric/hipfabric/fabric/internal/reduce"
	sumsChosen  = "^BenchmarkSum$/^vectors$/^(f32|bf16)$/^4096KiB$/^world=2$"
)

// sums runs the library's own benchmark of its sums, whose rounds time copy, sum, sum, copy of the same bytes.
type sums struct {
	rounds  int // of the benchmark
	program string
}

func (s *sums) prepare(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return missing("go", "golang")
	}
	s.program = filepath.Join(dir, "sums.test")
	_, err := output(ctx, "go", "test", "-c", "-o", s.program, sumsPackage)
	return err
}

func (s *sums) measureBoth(ctx context.Context) (ours, theirs results, err error) {
	out, err := output(ctx, s.program, "-test.run", "^$", "-test.bench", sumsChosen, "-test.benchtime", strconv.Itoa(s.rounds)+"x")
	if err != nil {
		return nil, nil, err
	}
	return parseSums(out)
}

// parseSums reads the lines BenchmarkSum/vectors/DTYPE/NKiB/world=2/PLACE-CORES ROUNDS, and pairs of figure and unit.
func parseSums(text []byte) (ours, theirs results, err error) {
	ours, theirs = results{}, results{}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "BenchmarkSum/") {
			continue
		}
		k, err := sumKey(fields[0])
		if err != nil {
			return nil, nil, err
		}
		units := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if units[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", fields[0], err)
			}
		}
		rate, share := units["GB/s"], units["of-copy"]
		if rate <= 0 || share <= 0 {
			return nil, nil, fmt.Errorf("expected GB/s and of-copy in %q", line)
		}
		ours[k], theirs[k] = rate, rate/share
	}
	if len(ours) == 0 {
		return nil, nil, fmt.Errorf("no benchmark of %s matches %s", sumsPackage, sumsChosen)
	}
	return ours, theirs, nil
}

func sumKey(name string) (key, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 6 {
		return key{}, fmt.Errorf("expected BenchmarkSum/WAY/DTYPE/NKiB/world=N/PLACE, got %q", name)
	}
	kib, err := strconv.Atoi(strings.TrimSuffix(parts[3], "KiB"))
	if err != nil {
		return key{}, fmt.Errorf("%s: %w", name, err)
	}
	k := key{"sum " + parts[2], kib << 10}
	if strings.HasPrefix(parts[5], "inplace") {
		k.op += inPlace
	}
	return k, nil
}
