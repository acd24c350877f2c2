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
	crossingPackage = "github.com/hipfabric/hipfabric/hipgo/internal/driver"
	crossingBar     = 1.3
)

// crossed is crossing's only key.
var crossed = key{op: "write and wait, one crossing"}

// crossing runs hipgo's own benchmark of a call into C that does nothing, bare and through the binding.
type crossing struct{ program string }

func crossings() comparison {
	return comparison{name: "crossing", title: "a bare cgo call", world: 1, both: &crossing{}, bars: map[key]float64{crossed: crossingBar}, unit: "ns"}
}

func (c *crossing) prepare(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return missing("go", "golang")
	}
	c.program = filepath.Join(dir, "crossing.test")
	_, err := output(ctx, "go", "test", "-c", "-o", c.program, crossingPackage)
	return err
}

func (c *crossing) measureBoth(ctx context.Context) (ours, theirs results, err error) {
	out, err := output(ctx, c.program, "-test.run", "^$", "-test.bench", `^BenchmarkCrossing$/^(bare|write\+wait)$`, "-test.benchtime", "300ms")
	if err != nil {
		return nil, nil, err
	}
	return parseCrossing(out)
}

// parseCrossing reads the lines BenchmarkCrossing/WHICH-CORES ROUNDS NS ns/op.
func parseCrossing(text []byte) (ours, theirs results, err error) {
	got := map[string]float64{}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "BenchmarkCrossing/") || fields[3] != "ns/op" {
			continue
		}
		which, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "BenchmarkCrossing/"), "-")
		if got[which], err = strconv.ParseFloat(fields[2], 64); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", fields[0], err)
		}
	}
	if got["bare"] <= 0 || got["write+wait"] <= 0 {
		return nil, nil, fmt.Errorf("expected BenchmarkCrossing/bare and /write+wait in:\n%s", text)
	}
	return results{crossed: got["write+wait"]}, results{crossed: got["bare"]}, nil
}
