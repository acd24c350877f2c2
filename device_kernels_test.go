//go:build linux && cgo

package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestTheAutomaticGateIsKernelsForAllWhereOneDeviceCannotWait(t *testing.T) {
	all := devices(t, 2, hiptest.Settings{NoStreamWait: true})
	ranks := staged(t, opened(t, 2, nil), gpus(all, stage.Auto))
	for _, r := range ranks {
		path := r.Paths()[1]
		assert.Equal(t, "kernels", path.Gate)
		assert.Contains(t, path.Reason, "rank 0's device cannot wait on stream values: ")
	}
	require.NoError(t, errors.Join(each(2, func(r int) error { return ranks[r].gather(t.Context(), 100, 0) })...))
	require.NoError(t, errors.Join(closeRanks(ranks)...))
}

// A captured call of each rank, launched again and again; the group's words gate refuses to be captured.
func TestCallsAreCapturedByTheKernelsGateAndRefusedByWords(t *testing.T) {
	all := devices(t, 2, hiptest.Settings{})
	ranks := staged(t, opened(t, 2, nil), gpus(all, stage.Kernels))
	require.NoError(t, errors.Join(each(2, func(r int) error { return ranks[r].replay(t.Context(), 20) })...))
	children := make([]*Group, 2)
	require.NoError(t, errors.Join(each(2, func(r int) (err error) {
		children[r], err = ranks[r].Split(t.Context(), "words", 0, r, SplitOptions{})
		return err
	})...))
	words := staged(t, children, gpus(all, stage.Words))
	for _, r := range words {
		_, err := r.calls.Capture(r.raw())
		require.ErrorIs(t, err, fabric.ErrCapture)
	}
	require.NoError(t, errors.Join(closeRanks(words)...))
	require.NoError(t, errors.Join(closeRanks(ranks)...))
}

// replay sums one number over the ranks in a graph, in place, so that each launch doubles it.
func (r *rank) replay(ctx context.Context, launches int) error {
	memory, err := r.device.Malloc(8)
	if err != nil {
		return err
	}
	host, err := r.device.HostMalloc(8)
	if err != nil {
		return err
	}
	host.Words().Store(0, 1)
	plan, err := r.calls.Capture(r.raw())
	if err != nil {
		return err
	}
	at := fabric.DevPtr(memory.Ptr())
	err = errors.Join(r.stream.Copy(memory.Ptr(), host.Ptr(), 8, hipgo.CopyHostToDevice), r.stream.BeginCapture(hipgo.CaptureRelaxed),
		r.calls.AllReduce(r.raw(), at, at, 1, fabric.I64, fabric.Sum))
	graph, endErr := r.stream.EndCapture()
	if err = errors.Join(err, endErr, plan.End()); err != nil {
		return err
	}
	exec, err := graph.Instantiate()
	for i := 0; i < launches && err == nil; i++ {
		err = exec.Launch(r.stream)
	}
	err = errors.Join(err, r.stream.Copy(host.Ptr(), memory.Ptr(), 8, hipgo.CopyDeviceToHost), r.calls.Wait(ctx, r.raw()))
	if got := host.Words().Load(0); err == nil && got != 1<<launches {
		err = fmt.Errorf("%d launches make %d of 1 at rank %d", launches, got, r.Rank())
	}
	return errors.Join(err, exec.Close(), graph.Close(), plan.Release(), memory.Close(), host.Close())
}
