//go:build linux && cgo

package hipfabric_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// onTwoRanks runs fn on two ranks that have a software device and a stream each.
func onTwoRanks(t *testing.T, fn func(ctx context.Context, g *hipfabric.Group, d *hipgo.Device, s hipgo.Stream) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	world := hiptest.Start(t, hiptest.Settings{Devices: 2})
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Go(func() {
			g, err := hipfabric.Open(ctx, hipfabric.Config{Rank: rank, World: 2, Master: l.Addr().String()})
			if !assert.NoError(t, err) {
				return
			}
			stream, err := world.Device(rank).NewStream(hipgo.StreamNonBlocking)
			if assert.NoError(t, err) {
				assert.NoError(t, fn(ctx, g, world.Device(rank), stream), "rank %d", rank)
				assert.NoError(t, g.Control().Barrier(ctx))
			}
			assert.NoError(t, g.Close(ctx))
			assert.NoError(t, stream.Close())
		})
	}
	ranks.Wait()
}

func TestTheGuidesSumOnDeviceMemoryRuns(t *testing.T) {
	onTwoRanks(t, func(ctx context.Context, g *hipfabric.Group, d *hipgo.Device, s hipgo.Stream) error {
		return sumOnDevice(ctx, g, d, s, 1000)
	})
}

func TestTheGuidesOwnBindingIsRefusedWithoutALibrary(t *testing.T) {
	onTwoRanks(t, func(ctx context.Context, g *hipfabric.Group, _ *hipgo.Device, s hipgo.Stream) error {
		err := ownBinding(ctx, g, 0, s.Raw(), 0, 0, 0)
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		return nil
	})
}

func TestTheGuidesCapturedStepRuns(t *testing.T) {
	onTwoRanks(t, func(ctx context.Context, g *hipfabric.Group, d *hipgo.Device, s hipgo.Stream) error {
		calls, err := g.Device(ctx, hipfabric.GPU{Device: d, Gate: stage.Kernels})
		if err != nil {
			return err
		}
		memory, err := d.Malloc(3 * 64)
		if err != nil {
			return err
		}
		host, err := d.HostMalloc(64)
		if err != nil {
			return err
		}
		in, out := memory.Ptr(), memory.Ptr()+64
		exec, plan, err := captureStep(calls, s, func() error {
			return calls.AllGather(fabric.Stream(s.Raw()), fabric.DevPtr(out), fabric.DevPtr(in), 64)
		})
		if err != nil {
			return err
		}
		for token := range 3 {
			for i := range host.Bytes() {
				host.Bytes()[i] = byte(10*token + g.Rank())
			}
			if err := s.Copy(in, host.Ptr(), 64, hipgo.CopyHostToDevice); err != nil {
				return err
			}
			if err := exec.Launch(s); err != nil {
				return err
			}
			if err := s.Copy(host.Ptr(), out+uintptr(64*(1-g.Rank())), 64, hipgo.CopyDeviceToHost); err != nil {
				return err
			}
			if err := calls.Wait(ctx, fabric.Stream(s.Raw())); err != nil {
				return err
			}
			assert.Equal(t, byte(10*token+1-g.Rank()), host.Bytes()[63], "token %d", token)
		}
		assert.NoError(t, plan.Release())
		assert.NoError(t, exec.Close())
		assert.NoError(t, memory.Close())
		return host.Close()
	})
}
