package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/gpu"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

func newDemo(line []string) *cobra.Command {
	var asRank bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Two ranks on this machine: every operation checked, from host and device memory, latency tables",
		Long: `Start two ranks as two processes that meet over loopback, check every operation with every type and reduction bit for bit
against the reference, print tables of latencies and one PASS line. First from host memory, then from device memory, with
both gates and in a captured graph: on a real GPU where there is one, else on the software device; the PASS line says which.
Last over RoCE, host memory and device memory: two ranks of one process, whose HCAs and devices are in its memory.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !asRank {
				return startSelf(cmd, 2, line, -1)
			}
			cfg, err := hipfabric.FromEnv()
			if err != nil {
				return err
			}
			cfg.Logger = logger(cmd, false)
			picked, err := gpu.Pick(gpu.Choice{}, "", cfg.LocalRank)
			if err != nil && !errors.Is(err, errors.ErrUnsupported) {
				return err
			}
			none := err
			out, progress := cmd.OutOrStdout(), cmd.ErrOrStderr()
			if cfg.Rank != 0 {
				out, progress = io.Discard, io.Discard
			}
			var about, device, wires string
			err = within(cmd, cfg, func(ctx context.Context, g *hipfabric.Group) (err error) {
				if about, err = demo(g, out, progress); err != nil {
					return err
				}
				device = fmt.Sprintf("device memory not at all: %v", none)
				if picked != nil {
					device, err = demoDevice(ctx, g, picked, out, progress)
				}
				return err
			})
			if picked != nil && err == nil {
				err = picked.Close()
			}
			if cfg.Rank == 0 && err == nil {
				wires, err = demoRoCE(cmd, picked != nil, out, progress)
			}
			return passed(out, about+"; "+device+"; "+wires, err)
		},
	}
	cmd.Flags().BoolVar(&asRank, "as-rank", false, "be one of the two ranks")
	_ = cmd.Flags().MarkHidden("as-rank")
	return cmd
}

// demoPlan is what both halves time.
func demoPlan() measure.Plan {
	return measure.Plan{Ops: []fabric.Op{fabric.AllGather, fabric.AllReduce, fabric.Exchange}, Sizes: []int{16, 4 << 10, 32 << 10, 1 << 20},
		DType: fabric.F32, Reduce: fabric.Sum, Iters: 200, Warmup: 20, Check: true, Seed: 1}
}

// demo is the half on host memory; it says what it checked.
func demo(g *hipfabric.Group, out, progress io.Writer) (string, error) {
	report := &measure.Report{Table: out}
	subject := measure.Subject{Kind: g.Paths()[0].Name, Host: g.Host()}
	_, _ = fmt.Fprintf(out, "%d ranks over %s, a process each; checking every operation bit for bit\n\n", g.World(), subject.Kind)
	if err := checkEvery(subject, out, progress); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintln(out)
	err := measure.Run(subject, demoPlan(), report.Add)
	return "host memory over " + subject.Kind, firstError(err, report.Flush())
}

func checkEvery(subject measure.Subject, out, progress io.Writer) error {
	tell, stop := watch(progress, "checking")
	tallies, err := measure.RunEvery(subject, demoPlan(), tell)
	stop(err)
	return firstError((&measure.Report{Table: out}).Tallies(tallies), err)
}
