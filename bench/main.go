// Bench holds hipfabric against what a user would have instead on this machine: a floor program that only swaps bytes over a socket,
// Open MPI and iperf3; and against itself: a gather against an exchange, calls on device memory against the bare device and the host
// path, sums against copies, more lanes against one, and idle ranks against a fiftieth of a core. It runs A B B A for some rounds, and
// prints a table of medians and of their ratios for docs/performance.md, and which bars are met.
//
//	make bench            or   go run ./bench [-rounds 5] [-only floor,window,gather,staged,openmpi,openmpi4,sums,idle,crossing,lanes,iperf3] [-force]
//
// A comparison whose program is not installed is left out by name, with the command that installs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code, err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	os.Exit(code)
}

func bench(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	ours := flags.String("ours", "bin/hipfabric", "the hipfabric binary")
	rounds := flags.Int("rounds", 5, "rounds of A B B A")
	only := flags.String("only", "", "comparisons to run, comma-separated; default: all")
	force := flags.Bool("force", false, "measure although the machine is busy")
	if err := flags.Parse(args); err != nil {
		return 2, nil // flags said why
	}
	if *rounds < 1 {
		return 2, fmt.Errorf("-rounds %d: at least 1", *rounds)
	}
	if _, err := os.Stat(*ours); err != nil {
		return 3, fmt.Errorf("%w: build it first with make build", err)
	}
	chosen, err := choose(comparisons(*ours), *only)
	if err != nil {
		return 2, err
	}
	busy, err := busyShare(ctx, 2*time.Second)
	switch {
	case err != nil:
		fmt.Fprintf(log, "bench: cannot tell whether this machine is idle: %v\n", err)
	case busy > maxBusy && !*force:
		return 3, fmt.Errorf("this machine is not idle: %.0f%% of it is in use, %.0f%% is the most; stop what runs, or pass -force for figures that nobody should record", busy*100, maxBusy*100)
	case busy > maxBusy:
		fmt.Fprintf(log, "bench: WARNING: %.0f%% of this machine is in use: do not record these figures\n", busy*100)
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)

	var rows []row
	var absent []string
	for _, c := range chosen {
		if err := c.prepare(ctx, dir); err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", c.name, err))
			fmt.Fprintf(log, "bench: left out: %s: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(log, "bench: %s, %d rounds\n", c.name, *rounds)
		got, err := c.run(ctx, *rounds)
		if err != nil {
			return 1, fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, got...)
	}
	absent = slices.Compact(absent) // of comparisons that share a name and what they lack
	writeReport(out, describe(ctx, busy), rows, absent)
	if len(rows) == 0 {
		return 3, errors.New("nothing was measured")
	}
	return 0, nil
}

// choose keeps the comparisons named in only, all when it names none. Several may share a name.
func choose(all []comparison, only string) ([]comparison, error) {
	if only == "" {
		return all, nil
	}
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	names = slices.Compact(names)
	var chosen []comparison
	for name := range strings.SplitSeq(only, ",") {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-only %s: no such comparison; there are %s", name, strings.Join(names, ", "))
		}
		for _, c := range all {
			if c.name == name {
				chosen = append(chosen, c)
			}
		}
	}
	return chosen, nil
}
