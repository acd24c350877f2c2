package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// maxBusy is the share of all cores that others may use while we measure.
const maxBusy = 0.10

// writeReport prints what was measured and where, as Markdown.
func writeReport(w io.Writer, where string, rows []row, absent []string) {
	fmt.Fprintf(w, "%s\n\n", where)
	fmt.Fprintln(w, "| against | call | ranks | bytes | ours | theirs | ratio (lowest to highest round) | bar |")
	fmt.Fprintln(w, "|---|---|--:|--:|--:|--:|---|---|")
	for _, r := range rows {
		unit := cmp.Or(r.c.unit, "us")
		fmt.Fprintf(w, "| %s | %s | %d | %s | %.4g %s | %.4g %s | %.2f (%.2f to %.2f) | %s |\n", r.c.title, r.key.op, r.c.world,
			size(r.key.bytes), r.ours, unit, r.theirs, unit, r.ratio, r.low, r.high, verdict(r))
	}
	if said := summary(rows); said != "" {
		fmt.Fprintf(w, "\n%s\n", said)
	}
	for _, a := range absent {
		fmt.Fprintf(w, "\nNot measured: %s\n", a)
	}
}

func verdict(r row) string {
	bar, has := r.c.bars[r.key]
	if !has {
		return "-"
	}
	text := fmt.Sprintf("%.2f", bar)
	if r.c.atLeast {
		text = "at least " + text
	}
	if r.met(bar) {
		return text + " met"
	}
	return text + " MISSED"
}

func (r row) met(bar float64) bool {
	if r.c.atLeast {
		return r.ratio >= bar
	}
	return r.ratio <= bar
}

// summary counts the bars and names the missed ones; "" when there was none.
func summary(rows []row) string {
	var missed []string
	bars := 0
	for _, r := range rows {
		bar, has := r.c.bars[r.key]
		if !has {
			continue
		}
		if bars++; !r.met(bar) {
			missed = append(missed, fmt.Sprintf("%s of %s against %s", r.key.op, size(r.key.bytes), r.c.title))
		}
	}
	switch {
	case bars == 0:
		return ""
	case len(missed) == 0:
		return fmt.Sprintf("PASS: %d of %d bars met.", bars, bars)
	}
	return fmt.Sprintf("MISS: %d of %d bars met; missed: %s.", bars-len(missed), bars, strings.Join(missed, "; "))
}

func size(n int) string {
	switch {
	case n == 0:
		return "-"
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// describe says where and when: what a reader needs to compare figures.
func describe(ctx context.Context, busy float64) string {
	said := func(name string, args ...string) string {
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(string(out))
	}
	commit := said("git", "rev-parse", "--short=12", "HEAD")
	if said("git", "status", "--porcelain") != "" {
		commit += " with changes"
	}
	return fmt.Sprintf("`make bench` at %s, commit %s: %s, %d cores, Linux %s, %s, %.0f%% in use before.",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), commit, cpuModel(), runtime.NumCPU(), said("uname", "-r"), runtime.Version(), busy*100)
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// busyShare is the share of all cores in use over the time given. The load average would still remember the build before.
func busyShare(ctx context.Context, over time.Duration) (float64, error) {
	busy, all, err := cpuTime()
	if err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(over):
	}
	laterBusy, laterAll, err := cpuTime()
	if err != nil {
		return 0, err
	}
	return float64(laterBusy-busy) / float64(max(laterAll-all, 1)), nil
}

// cpuTime reads the ticks that all cores were busy, and all ticks, since boot.
func cpuTime() (busy, all uint64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return parseStat(first)
}

// parseStat reads /proc/stat's first line: cpu user nice system idle iowait irq softirq steal ...
func parseStat(line string) (busy, all uint64, err error) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat starts with %q", line)
	}
	for i, f := range fields[1:min(len(fields), 9)] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		all += n
		if i != 3 && i != 4 { // idle, iowait
			busy += n
		}
	}
	return busy, all, nil
}
