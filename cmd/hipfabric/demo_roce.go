package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/gpu"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// demoRanks is how many ranks of this process meet over RoCE: HCAs in memory reach no other process.
const demoRanks = 2

// demoRoCE checks every operation over HCAs in memory, from host memory and, with devices, from that of software ones, and says so.
func demoRoCE(cmd *cobra.Command, devices bool, out, progress io.Writer) (about string, err error) {
	hcas, err := verbstest.New(1, verbstest.Switch(demoRanks, 2))
	if err != nil {
		return "", err
	}
	defer hcas.Close()
	folder, err := os.MkdirTemp("", "hipfabric-demo-")
	if err != nil {
		return "", err
	}
	defer func() { err = firstError(err, os.RemoveAll(folder)) }()
	var picked []*gpu.Picked
	about = "host memory over roce on HCAs in memory"
	if devices {
		if picked, err = gpu.Several(demoRanks, "as the HCAs"); err != nil {
			return "", err
		}
		about = "host memory and software devices', small calls by the mailbox, over roce on HCAs in memory"
	}
	ended := make(chan error, demoRanks)
	for r := range demoRanks {
		cfg := hipfabric.Config{Name: "roce", Rank: r, World: demoRanks, LocalRank: r, Master: "file:" + filepath.Join(folder, "master"),
			Paths: []string{kindRoCE}, RDMA: hcas.Host(r).Library(), Logger: logger(cmd, false)}
		out, progress := out, progress
		if r != 0 {
			out, progress = io.Discard, io.Discard
		}
		go func() {
			ended <- within(cmd, cfg, func(ctx context.Context, g *hipfabric.Group) error {
				if picked == nil {
					return demoWire(g, out, progress)
				}
				return firstError(demoWire(g, out, progress), demoWireDevice(ctx, g, picked[r], out, progress))
			})
		}()
	}
	for range demoRanks {
		err = firstError(err, <-ended)
	}
	if err == nil && devices {
		err = picked[0].Close()
	}
	return about, err
}

func demoWire(g *hipfabric.Group, out, progress io.Writer) error {
	_, _ = fmt.Fprintf(out, "\n%d ranks over roce, in one process, on HCAs in memory; checking every operation bit for bit\n\n", g.World())
	subject := measure.Subject{Kind: kindRoCE, About: "HCAs in memory", Host: g.Host()}
	return demoTables(subject, out, progress)
}

func demoWireDevice(ctx context.Context, g *hipfabric.Group, picked *gpu.Picked, out, progress io.Writer) error {
	s, err := openStaged(ctx, g, picked, stage.Kernels)
	if err != nil {
		return err
	}
	if !s.small.Chosen {
		return fmt.Errorf("%w: no mailbox: %s", fabric.ErrUnsupported, s.small.Reason)
	}
	_, _ = fmt.Fprintf(out, "\n%s, over roce; small calls by the mailbox: %s; checking every operation bit for bit\n\n", s.path.Reason, s.small.Reason)
	subject := s.subject(g)
	subject.About += ", over roce"
	if err := demoTables(subject, out, progress); err != nil {
		return err
	}
	return s.close(demoGraph(ctx, g, s, out))
}

// demoTables checks a subject, then times it.
func demoTables(subject measure.Subject, out, progress io.Writer) error {
	if err := checkEvery(subject, out, progress); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	plan := demoPlan()
	plan.Sizes, plan.Iters = []int{16, 32 << 10, 1 << 20}, 50
	report := &measure.Report{Table: out}
	return firstError(measure.Run(subject, plan, report.Add), report.Flush())
}
