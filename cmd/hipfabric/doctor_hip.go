package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/gpu"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// betaNote is what AMD's own documentation says of what the words gate rests on.
const betaNote = "HIP's stream value operations, which the words gate rests on, are beta: the self-test says what this runtime does, not what the next one will"

type hipFlags struct {
	library string
	timeout time.Duration
	asJSON  bool
	conform bool
	cuda    bool
	bound   time.Duration
}

func newDoctorHip() *cobra.Command {
	f := &hipFlags{}
	cmd := &cobra.Command{
		Use:   "hip",
		Short: "List the GPUs of this host and say whether a group can use them",
		Long: `Open the HIP library, list its GPUs or say why there are none, and try each: whether its streams wait on values (the words
gate), and whether the built-in kernels have an image for it (the kernels gate). HIP's stream value operations are beta.

The exit code is 0 when every GPU can be used by one gate, 3 when there is no library, no GPU or one that no gate can use, and
7 when a device call, or a check of --conform, failed.`,
		Example: `  hipfabric doctor hip
  hipfabric doctor hip --library /opt/rocm/lib/libamdhip64.so.7 --json
  hipfabric doctor hip --conform > conform.txt`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.library, "library", "", "the HIP library; default: the one in the process, else libamdhip64.so.7, .6, .5 as the loader finds them, else those of /opt/rocm")
	flags.BoolVar(&f.cuda, "cuda", false, "NVIDIA's driver, HIP's other platform, instead: libcuda.so.1; unproven until docs/receipts has a receipt of one")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "of all of it")
	flags.BoolVar(&f.asJSON, "json", false, "as one JSON document")
	flags.BoolVar(&f.conform, "conform", false, "run hipgo/conform on every GPU as well: what the staged path needs of a HIP runtime, check by check, as a receipt; the exit code is 7 when one fails")
	flags.DurationVar(&f.bound, "bound", 2*time.Second, "with --conform: how long the device may take over one thing before it counts as stuck")
	return cmd
}

func (f *hipFlags) run(cmd *cobra.Command) error {
	for name, d := range map[string]time.Duration{"timeout": f.timeout, "bound": f.bound} {
		if d <= 0 {
			return fabric.Invalidf("--%s is %v; it must be above 0", name, d)
		}
	}
	if cmd.Flags().Changed("bound") && !f.conform {
		return fabric.Invalidf("--bound belongs to --conform")
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	question := gpu.Question{Library: f.library, CUDA: f.cuda}
	if f.conform {
		question.Conform = f.bound
	}
	report := gpu.Examine(ctx, question)
	var err error
	if f.asJSON {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	} else {
		err = writeHip(cmd.OutOrStdout(), report)
	}
	return firstError(err, report.Err())
}

// writeHip is the report for people.
func writeHip(w io.Writer, r gpu.Report) error {
	if r.Library != "" {
		if _, err := fmt.Fprintf(w, "library  %s\nHIP      %s\n\n", r.Library, r.Version); err != nil {
			return err
		}
	}
	if len(r.GPUs) > 0 {
		t := measure.NewTable()
		t.AppendHeader(table.Row{"GPU", "name", "arch", "PCI id", "memory", "kind", "self-test", "kernels"})
		for _, g := range r.GPUs {
			kind := "discrete"
			if g.Integrated {
				kind = "integrated"
			}
			t.AppendRow(table.Row{g.Ordinal, g.Name, g.Arch, g.PCI, sized(float64(g.MemoryBytes)), kind, verdictOf(g.SelfTest), verdictOf(g.Kernels)})
		}
		if _, err := fmt.Fprintln(w, t.Render()); err != nil {
			return err
		}
		for _, g := range r.GPUs {
			for _, note := range []struct{ what, why string }{{"self-test", g.SelfTest}, {"kernels", g.Kernels}} {
				if note.why != "" {
					_, _ = fmt.Fprintf(w, "\nGPU %d, %s: %s\n", g.Ordinal, note.what, note.why)
				}
			}
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	for _, g := range r.GPUs {
		if g.Conform != nil {
			_, _ = fmt.Fprintf(w, "%v\n", *g.Conform)
		}
	}
	_, err := fmt.Fprintln(w, "note: "+betaNote)
	return err
}

// verdictOf is a column's word for why something failed, "" being that it did not.
func verdictOf(why string) string {
	if why == "" {
		return "ok"
	}
	return "no"
}
