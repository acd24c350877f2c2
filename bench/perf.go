package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// perfSchema is what each result line of hipfabric perf --json names itself.
const perfSchema = "hipfabric.perf/1"

// hipfabric measures ours by its own perf command.
type hipfabric struct {
	binary string
	world  int
	ops    []string
	sizes  []int
	iters  int
	rate   bool // algbw_GBps instead of p50_us
}

func (h *hipfabric) prepare(context.Context, string) error {
	_, err := os.Stat(h.binary)
	return err
}

func (h *hipfabric) args() []string {
	return []string{"perf", "-n", strconv.Itoa(h.world), "--kind", "tcp", "--op", strings.Join(h.ops, ","),
		"--sizes", strings.Join(decimal(h.sizes), ","), "--dtype", "f32", "--redop", "sum",
		"--iters", strconv.Itoa(h.iters), "--warmup", "50", "--check", "--json", "-"}
}

func (h *hipfabric) measure(ctx context.Context) (results, error) {
	out, err := output(ctx, h.binary, h.args()...)
	if err != nil {
		return nil, err
	}
	return parsePerf(out, h.world, h.rate)
}

// parsePerf reads perf's result lines; other lines, such as the first about the environment, are passed over.
func parsePerf(text []byte, world int, rate bool) (results, error) {
	got := results{}
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line struct {
			Schema string  `json:"schema"`
			Op     string  `json:"op"`
			World  int     `json:"world"`
			Bytes  int     `json:"bytes"`
			P50    float64 `json:"p50_us"`
			Algbw  float64 `json:"algbw_GBps"`
			Wrong  int     `json:"wrong"`
		}
		if json.Unmarshal(in.Bytes(), &line) != nil || line.Schema != perfSchema || line.Op == "" {
			continue
		}
		if line.Wrong != 0 {
			return nil, fmt.Errorf("perf found %d wrong results in %s of %d bytes", line.Wrong, line.Op, line.Bytes)
		}
		if line.World != world {
			return nil, fmt.Errorf("perf measured %d ranks instead of %d", line.World, world)
		}
		got[key{line.Op, line.Bytes}] = line.P50
		if rate {
			got[key{line.Op, line.Bytes}] = line.Algbw
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("perf printed no %s line", perfSchema)
	}
	return got, nil
}

func decimal(n []int) []string {
	var s []string
	for _, v := range n {
		s = append(s, strconv.Itoa(v))
	}
	return s
}

// output runs a program and returns what it printed; its error ends with what it complained about.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, oneRun)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.Bytes())
	}
	return out.Bytes(), nil
}
