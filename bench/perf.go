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

// perf measures ours by its own perf command.
type perf struct {
	binary  string
	world   int
	ops     []string
	sizes   []int
	iters   int
	lanes   int  // 0: the default
	window  int  // 0: the default, -1: no bound
	inPlace bool // its keys end with " in place"
	copy    bool // the time of a copy of as many bytes, by all ranks at once in the same processes, is added
	rate    bool // algbw_GBps instead of p50_us
}

// inPlace ends the operation's name in a key of calls in place.
const inPlace = " in place"

func (p *perf) prepare(context.Context, string) error {
	_, err := os.Stat(p.binary)
	return err
}

func (p *perf) args() []string {
	args := []string{"perf", "-n", strconv.Itoa(p.world), "--kind", "tcp", "--op", strings.Join(p.ops, ","),
		"--sizes", strings.Join(decimal(p.sizes), ","), "--dtype", "f32", "--redop", "sum",
		"--iters", strconv.Itoa(p.iters), "--warmup", "50", "--check", "--json", "-"}
	if p.lanes > 0 {
		args = append(args, "--lanes", strconv.Itoa(p.lanes))
	}
	if p.window != 0 {
		args = append(args, "--window", strconv.Itoa(p.window))
	}
	if p.inPlace {
		args = append(args, "--in-place")
	}
	if p.copy {
		args = append(args, "--copy")
	}
	return args
}

func (p *perf) measure(ctx context.Context) (results, error) {
	out, err := output(ctx, p.binary, p.args()...)
	if err != nil {
		return nil, err
	}
	return p.parse(out)
}

// perfLine is what is read of one of perf's results.
type perfLine struct {
	Schema  string   `json:"schema"`
	Op      string   `json:"op"`
	World   int      `json:"world"`
	Bytes   int      `json:"bytes"`
	InPlace bool     `json:"in_place"`
	Lanes   int      `json:"lanes"`
	P50     float64  `json:"p50_us"`
	Algbw   float64  `json:"algbw_GBps"`
	Wrong   int      `json:"wrong"`
	Copy    *float64 `json:"copy_us"`
}

// parse reads perf's result lines; other lines, such as the first about the environment, are passed over.
func (p *perf) parse(text []byte) (results, error) {
	got := results{}
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line perfLine
		if json.Unmarshal(in.Bytes(), &line) != nil || line.Schema != perfSchema || line.Op == "" {
			continue
		}
		if err := p.asked(line); err != nil {
			return nil, err
		}
		k := key{line.Op, line.Bytes}
		if line.InPlace {
			k.op += inPlace
		}
		switch {
		case p.rate:
			got[k] = line.Algbw
		case p.copy:
			got[k] = line.P50 + *line.Copy
		default:
			got[k] = line.P50
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

// asked refuses a figure of anything but what was asked for.
func (p *perf) asked(line perfLine) error {
	switch {
	case line.Wrong != 0:
		return fmt.Errorf("perf found %d wrong results in %s of %d bytes", line.Wrong, line.Op, line.Bytes)
	case line.World != p.world:
		return fmt.Errorf("perf measured %d ranks instead of %d", line.World, p.world)
	case p.lanes > 0 && line.Lanes != p.lanes:
		return fmt.Errorf("perf measured %d lanes instead of %d", line.Lanes, p.lanes)
	case line.InPlace != p.inPlace:
		return fmt.Errorf("perf measured in place: %t instead of %t", line.InPlace, p.inPlace)
	case p.copy && line.Copy == nil:
		return fmt.Errorf("perf gave no copy_us for %s of %d bytes", line.Op, line.Bytes)
	}
	return nil
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
