//go:build cgo && linux

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	"github.com/hipfabric/hipfabric/hipgo/internal/driver/engine"
)

const variable = "HIPFABRIC_TEST_ENGINE"

// A library stays loaded, so the engine is a process of its own: this test binary again.
func TestAnEngineBringsItsOwnBinding(t *testing.T) {
	path := hiptest.Library(t, 7)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestInTheEnginesProcess$", "-test.v")
	child.Env = append(os.Environ(), variable+"="+path, "SOFTHIP=devices=2")
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		assert.Contains(t, string(out), fmt.Sprintf("both ranks gathered by %v", gate))
	}
}

func TestInTheEnginesProcess(t *testing.T) {
	path := os.Getenv(variable)
	if path == "" {
		t.Skip("run by TestAnEngineBringsItsOwnBinding")
	}
	lib, err := engine.Open(path) // before anything of ours looks for a HIP
	require.NoError(t, err)
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		onTwoRanks(t, func(ctx context.Context, g *hipfabric.Group) error { return gather(ctx, g, lib, gate) })
		fmt.Println("both ranks gathered by", gate)
	}
	refusals(t, lib)

	rt, err := hipgo.Open(hipgo.Config{Handle: uintptr(lib)})
	require.NoError(t, err)
	assert.Equal(t, path, rt.Library())
	n, err := rt.Count()
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	resident, err := hipgo.Open(hipgo.Config{})
	require.NoError(t, err)
	assert.Equal(t, rt.String(), resident.String(), "the engine's is the process's")
}

// refusals are of rank 1; rank 0 hears of them, and the group goes on.
func refusals(t *testing.T, lib engine.Library) {
	other, err := engine.Open("libc.so.6")
	require.NoError(t, err)
	for text, c := range map[string]struct {
		gpu  hipfabric.GPU
		kind error
	}{
		"Ordinal is 2; HIP 7.":                              {hipfabric.GPU{Library: uintptr(lib), Ordinal: 2}, fabric.ErrInvalid},
		"Ordinal is 18446744073709551615; HIP 7.":           {hipfabric.GPU{Library: uintptr(lib), Ordinal: ^uintptr(0)}, fabric.ErrInvalid},
		"has no hipRuntimeGetVersion: it is no HIP runtime": {hipfabric.GPU{Library: uintptr(other)}, fabric.ErrUnsupported},
	} {
		onTwoRanks(t, func(ctx context.Context, g *hipfabric.Group) error {
			gpu := hipfabric.GPU{Library: uintptr(lib)}
			if g.Rank() == 1 {
				gpu = c.gpu
			}
			_, err := g.Device(ctx, gpu)
			assert.ErrorIs(t, err, c.kind, "rank %d", g.Rank())
			assert.ErrorContains(t, err, text, "rank %d", g.Rank())
			return gather(ctx, g, lib, stage.Auto)
		})
	}
}

// onTwoRanks runs fn on two ranks, each on a thread of its own.
func onTwoRanks(t *testing.T, fn func(context.Context, *hipfabric.Group) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	master := "file:" + filepath.Join(t.TempDir(), "master")
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			g, err := hipfabric.Open(ctx, hipfabric.Config{Rank: rank, World: 2, LocalRank: rank, Master: master, Logger: slog.New(slog.DiscardHandler)})
			if assert.NoError(t, err, "rank %d", rank) {
				assert.NoError(t, fn(ctx, g), "rank %d", rank)
				assert.NoError(t, g.Close(ctx), "rank %d", rank)
			}
		})
	}
	ranks.Wait()
	require.False(t, t.Failed())
}

const bytes = 700_000 // two parts

// gather gathers with the engine's memory on its stream, between two copies of its own, while its thread is at the other device.
func gather(ctx context.Context, g *hipfabric.Group, lib engine.Library, gate stage.Gate) (err error) {
	mine, theirs := g.Rank(), 1-g.Rank()
	if err := lib.SetDevice(mine); err != nil {
		return err
	}
	stream, err := lib.NewStream()
	if err != nil {
		return err
	}
	at, err := lib.Malloc(6 * bytes)
	if err != nil {
		return err
	}
	seed, in, out, result := at, at+bytes, at+2*bytes, at+4*bytes
	if err := errors.Join(lib.Upload(seed, pattern(mine)), lib.SetDevice(theirs)); err != nil {
		return err
	}
	kept := func(call string, err error) error {
		now, e := lib.Device()
		if err = errors.Join(err, e); err == nil && now != theirs {
			err = fmt.Errorf("%s leaves the thread at device %d, and found it at %d", call, now, theirs)
		}
		return err
	}
	calls, err := g.Device(ctx, hipfabric.GPU{Library: uintptr(lib), Ordinal: uintptr(mine), Gate: gate})
	if err = kept("Device", err); err != nil {
		return err
	}
	s := fabric.Stream(stream)
	if err := errors.Join(lib.Copy(in, seed, bytes, stream),
		kept("AllGather", calls.AllGather(s, fabric.DevPtr(out), fabric.DevPtr(in), bytes)),
		lib.Copy(result, out, 2*bytes, stream),
		kept("Wait", calls.Wait(ctx, s))); err != nil {
		return err
	}
	got := make([]byte, 2*bytes)
	if err := errors.Join(lib.SetDevice(mine), lib.Download(got, result), lib.SetDevice(theirs)); err != nil {
		return err
	}
	if !slices.Equal(got, slices.Concat(pattern(0), pattern(1))) {
		return fmt.Errorf("rank %d has other bytes than were sent", mine)
	}
	if err := kept("Close", errors.Join(g.Control().Barrier(ctx), g.Close(ctx))); err != nil {
		return err
	}
	return errors.Join(lib.SetDevice(mine), lib.Destroy(stream), lib.Free(at))
}

func pattern(rank int) []byte {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)*5 ^ byte(rank+1)*31
	}
	return b
}
