package hipfabric_test

import (
	"context"
	"errors"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo"
)

// What docs/guide.md shows of GPU memory. They are compiled; examples/staged runs the first.

func sumOnDevice(ctx context.Context, group *hipfabric.Group, device *hipgo.Device, stream hipgo.Stream, count int) error {
	calls, err := group.Device(ctx, hipfabric.GPU{Device: device}) // every rank calls it
	if err != nil {
		return err
	}
	vector, err := calls.Alloc(4 * count) // once, outside the loop; hipMalloc's memory works as well
	if err != nil {
		return err
	}
	defer func() { _ = vector.Close() }() // after the last Wait
	s, at := fabric.Stream(stream.Raw()), vector.Device()
	// ... kernels that fill the vector, queued on the stream
	if err := calls.AllReduce(s, at, at, count, fabric.F32, fabric.Sum); err != nil { // queues, in order with them
		return err
	}
	// ... kernels that use the sum
	return calls.Wait(ctx, s) // the results are good once this says nil
}

func ownBinding(ctx context.Context, group *hipfabric.Group, library, stream, in, out uintptr, bytes int) error {
	calls, err := group.Device(ctx, hipfabric.GPU{Library: library, Ordinal: 0}) // what your dlopen gave
	if err != nil {
		return err
	}
	return calls.AllGather(fabric.Stream(stream), fabric.DevPtr(out), fabric.DevPtr(in), bytes) // your hipStream_t, your pointers
}

func captureStep(calls *fabric.StreamCollective, stream hipgo.Stream, step func() error) (*hipgo.Exec, *fabric.Plan, error) {
	plan, err := calls.Capture(fabric.Stream(stream.Raw())) // before the stream captures
	if err != nil {
		return nil, nil, err
	}
	err = stream.BeginCapture(hipgo.CaptureRelaxed)
	if err != nil {
		return nil, nil, errors.Join(err, plan.Release())
	}
	err = step() // kernels and calls, queued as ever
	graph, end := stream.EndCapture()
	if err = errors.Join(err, end, plan.End()); err != nil {
		return nil, nil, errors.Join(err, plan.Release())
	}
	exec, err := graph.Instantiate()
	return exec, plan, errors.Join(err, graph.Close()) // exec.Launch(stream) for each token; plan.Release() after the last one
}
