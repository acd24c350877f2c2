package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

func newDemo(line []string) *cobra.Command {
	var asRank bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Two ranks on this machine: every operation checked, a latency table",
		Long: `Start two ranks as two processes that meet over loopback, check every operation with every type and reduction bit for bit
against the reference, print a table of latencies and one PASS line.`,
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
			return within(cmd, cfg, func(_ context.Context, g *hipfabric.Group) error {
				out, progress := cmd.OutOrStdout(), cmd.ErrOrStderr()
				if g.Rank() != 0 {
					out, progress = io.Discard, io.Discard
				}
				return passed(out, "", demo(g, out, progress))
			})
		},
	}
	cmd.Flags().BoolVar(&asRank, "as-rank", false, "be one of the two ranks")
	_ = cmd.Flags().MarkHidden("as-rank")
	return cmd
}

func demo(g *hipfabric.Group, out, progress io.Writer) error {
	report := &measure.Report{Table: out}
	subject := measure.Subject{Kind: g.Paths()[0].Name, Host: g.Host()}
	_, _ = fmt.Fprintf(out, "%d ranks over %s, a process each; checking every operation bit for bit\n\n", g.World(), g.Paths()[0].Name)
	plan := measure.Plan{Ops: []fabric.Op{fabric.AllGather, fabric.AllReduce, fabric.Exchange}, Sizes: []int{16, 4 << 10, 32 << 10, 1 << 20},
		DType: fabric.F32, Reduce: fabric.Sum, Iters: 200, Warmup: 20, Check: true, Seed: 1}
	tell, stop := watch(progress, "checking")
	tallies, err := measure.RunEvery(subject, plan, tell)
	stop(err)
	if e := report.Tallies(tallies); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	err = measure.Run(subject, plan, report.Add)
	if e := report.Flush(); err == nil {
		err = e
	}
	return err
}
