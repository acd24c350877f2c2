package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/gpu"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
)

// graphReplays is how often the demo launches its captured graph.
const graphReplays = 20

// demoDevice checks every operation from device memory with both gates, and those of a captured graph, and says on what.
func demoDevice(ctx context.Context, g *hipfabric.Group, picked *gpu.Picked, out, progress io.Writer) (string, error) {
	_, _ = fmt.Fprintf(out, "\ndevice memory: %v\n", picked)
	// Automatic, which is words where the device can, on the group itself; kernels on a split of it, since a group has one gate.
	first, err := openStaged(ctx, g, picked, stage.Auto)
	if err != nil {
		return "", err
	}
	second, err := g.Split(ctx, "graph", 0, g.Rank(), hipfabric.SplitOptions{})
	if err != nil {
		return "", err
	}
	kernels, err := openStaged(ctx, second, picked, stage.Kernels)
	if err != nil {
		return "", err
	}
	for _, half := range []struct {
		s *staged
		g *hipfabric.Group
	}{{first, g}, {kernels, second}} {
		_, _ = fmt.Fprintf(out, "\n%s; checking every operation bit for bit\n\n", half.s.path.Reason)
		if err := checkEvery(half.s.subject(half.g), out, progress); err != nil {
			return "", err
		}
	}
	if err := demoGraph(ctx, second, kernels, out); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintln(out)
	report := &measure.Report{Table: out}
	plan := demoPlan()
	plan.Sizes, plan.Iters = []int{16, 32 << 10, 1 << 20}, 50
	for _, half := range []measure.Subject{first.subject(g), kernels.subject(second)} {
		if err := errors.Join(measure.Run(half, plan, report.Add), report.Flush()); err != nil {
			return "", err
		}
	}
	about := fmt.Sprintf("device memory staged over tcp on %s, gates %s and %s, %d replays of a captured graph", short(picked), first.path.Gate, kernels.path.Gate, graphReplays)
	return about, errors.Join(kernels.close(nil), second.Close(ctx), first.close(nil))
}

func short(p *gpu.Picked) string {
	if p.Software() {
		return "the software device"
	}
	return p.Device.Arch() + " at " + p.Device.PCI()
}

// demoGraph captures a call of every operation and launches it again and again.
func demoGraph(ctx context.Context, g *hipfabric.Group, s *staged, out io.Writer) error {
	_, _ = fmt.Fprintf(out, "\na graph with every operation, launched %d times on fresh input\n\n", graphReplays)
	tally, err := measure.RunReplays(s.subject(g), demoPlan(), s.record, graphReplays)
	return firstError((&measure.Report{Table: out}).Tallies([]measure.Tally{tally}), err)
}

// record is a measure.Recorder on s's stream.
func (s *staged) record(calls func() error) (launch, end func() error, err error) {
	raw := fabric.Stream(s.stream.Raw())
	plan, err := s.calls.Capture(raw)
	if err != nil {
		return nil, nil, err
	}
	if err := s.stream.BeginCapture(hipgo.CaptureRelaxed); err != nil {
		return nil, nil, gpu.Kind(err)
	}
	queued := calls()
	graph, err := s.stream.EndCapture()
	if err = firstError(queued, gpu.Kind(err), plan.End()); err != nil {
		return nil, nil, err
	}
	exec, err := graph.Instantiate()
	if err != nil {
		return nil, nil, gpu.Kind(err)
	}
	launch = func() error { return gpu.Kind(exec.Launch(s.stream)) }
	end = func() error { return errors.Join(gpu.Kind(exec.Close()), gpu.Kind(graph.Close()), plan.Release()) }
	return launch, end, nil
}
