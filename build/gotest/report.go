package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A tally counts tests, subtests included, and packages that failed outside any test.
type tally struct{ passed, failed, skipped int }

func (t *tally) add(o tally) {
	t.passed += o.passed
	t.failed += o.failed
	t.skipped += o.skipped
}

func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// An event is a line of go test -json, as far as we read it.
type event struct {
	Action, Package, Test, Output string
}

// marker begins what a test says that passes too: a figure that a reader of the whole run wants to see.
const marker = "RESULT: "

// report turns events into go test's ordinary output on w, with what passing tests say behind the marker.
func report(events io.Reader, w io.Writer) (tally, error) {
	var t tally
	kept := map[[2]string]*strings.Builder{} // output of tests that still run
	failed := map[string]bool{}              // packages with a failed test
	for line, err := range lines(events) {
		if err != nil {
			return t, fmt.Errorf("reading go test's output: %w", err)
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			_, _ = w.Write(line) // not an event: something wrote past go test
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch {
		case e.Action == "output" && e.Test != "":
			if kept[key] == nil {
				kept[key] = new(strings.Builder)
			}
			kept[key].WriteString(e.Output)
		case e.Action == "output" && e.Output != "PASS\n" || e.Action == "build-output":
			_, _ = io.WriteString(w, e.Output)
		case e.Test == "" && e.Action == "fail":
			if !failed[e.Package] {
				t.failed++ // it did not build, or ended outside a test
			}
			for k, out := range kept { // a package that crashed leaves tests open
				if k[0] == e.Package {
					_, _ = io.WriteString(w, out.String())
					delete(kept, k)
				}
			}
		case e.Test == "":
		case e.Action == "pass":
			t.passed++
			for _, said := range results(kept[key]) {
				_, _ = fmt.Fprintf(w, "%s%s: %s\n", marker, e.Test, said)
			}
			delete(kept, key)
		case e.Action == "skip":
			t.skipped++
			_, _ = fmt.Fprintf(w, "--- SKIP: %s: %s\n", e.Test, reason(kept[key]))
			delete(kept, key)
		case e.Action == "fail":
			t.failed++
			failed[e.Package] = true
			if kept[key] != nil {
				_, _ = io.WriteString(w, kept[key].String())
			}
			delete(kept, key)
		}
	}
	return t, nil
}

// results are what the test said behind the marker, by itself or through t.Log, which puts file and line before it.
func results(out *strings.Builder) []string {
	if out == nil {
		return nil
	}
	var said []string
	for line := range strings.Lines(out.String()) {
		if _, result, found := strings.Cut(line, marker); found {
			said = append(said, strings.TrimSpace(result))
		}
	}
	return said
}

// reason picks what the test said from a skipped test's output.
func reason(out *strings.Builder) string {
	if out == nil {
		return "no reason given"
	}
	var said []string
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}
