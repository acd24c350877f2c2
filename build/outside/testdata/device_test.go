//go:build linux && cgo

package outside

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// TestTwoRanksGatherDeviceMemory has all C of the module built from where this one has it, with both gates.
func TestTwoRanksGatherDeviceMemory(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			master, world := freeAddress(t), hiptest.Start(t, hiptest.Settings{Devices: 2})
			var ranks sync.WaitGroup
			for rank := range 2 {
				ranks.Go(func() {
					if err := gatherOnDevice(ctx, rank, master, world.Device(rank), gate); err != nil {
						t.Errorf("rank %d: %v", rank, err)
					}
				})
			}
			ranks.Wait()
		})
	}
}

func gatherOnDevice(ctx context.Context, rank int, master string, device *hipgo.Device, gate stage.Gate) error {
	g, err := hipfabric.Open(ctx, hipfabric.Config{Rank: rank, World: 2, Master: master})
	if err != nil {
		return err
	}
	calls, err := g.Device(ctx, hipfabric.GPU{Device: device, Gate: gate})
	if err != nil {
		return err
	}
	stream, err := device.NewStream(hipgo.StreamNonBlocking)
	if err != nil {
		return err
	}
	memory, err := device.Malloc(48)
	if err != nil {
		return err
	}
	host, err := device.HostMalloc(32)
	if err != nil {
		return err
	}
	host.Bytes()[15] = byte(rank + 1)
	in, out := memory.Ptr(), memory.Ptr()+16
	for _, step := range []func() error{
		func() error { return stream.Copy(in, host.Ptr(), 16, hipgo.CopyHostToDevice) },
		func() error {
			return calls.AllGather(fabric.Stream(stream.Raw()), fabric.DevPtr(out), fabric.DevPtr(in), 16)
		},
		func() error { return stream.Copy(host.Ptr(), out, 32, hipgo.CopyDeviceToHost) },
		func() error { return calls.Wait(ctx, fabric.Stream(stream.Raw())) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if a, b := host.Bytes()[15], host.Bytes()[31]; a != 1 || b != 2 {
		return fmt.Errorf("gathered %d and %d, not 1 and 2", a, b)
	}
	for _, end := range []func() error{
		func() error { return g.Control().Barrier(ctx) }, memory.Close, host.Close,
		func() error { return g.Close(ctx) }, stream.Close,
	} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}
