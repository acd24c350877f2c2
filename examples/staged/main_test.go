//go:build linux && cgo

package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheSumIsThatOfAllRanks(t *testing.T) {
	const world = 3
	devices := hiptest.Start(t, hiptest.Settings{Devices: world})
	master := "file:" + filepath.Join(t.TempDir(), "master")
	sums, errs := make([]float32, world), make([]error, world)
	var ranks sync.WaitGroup
	for r := range world {
		ranks.Go(func() {
			group, err := hipfabric.Open(t.Context(), hipfabric.Config{Rank: r, World: world, Master: master, OpenTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				errs[r] = err
				return
			}
			sums[r], err = decode(t.Context(), group, devices.Device(r))
			errs[r] = errors.Join(err, group.Control().Barrier(t.Context()), group.Close(t.Context()))
		})
	}
	ranks.Wait()
	require.NoError(t, errors.Join(errs...))
	assert.Equal(t, []float32{6, 6, 6}, sums)
}

func TestAloneItRunsOnTheSoftwareDevice(t *testing.T) {
	require.NoError(t, run(t.Context(), true))
}
