package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// decode runs the engine in every rank of a group in memory; all must give the same tokens.
func decode(t *testing.T, world int, w work) []uint32 {
	tokens := make([][]uint32, world)
	fabrictest.Each(t, fabrictest.Groups(t, world), func(g *fabrictest.Group) error {
		var err error
		tokens[g.Host.Rank()], _, err = serve(t.Context(), g.Host, g.Control, share(g.Host.Rank(), w))
		return err
	})
	return agreed(t, tokens)
}

// decodeOverTCP is the same over sockets, as the program does it.
func decodeOverTCP(t *testing.T, world int, w work) []uint32 {
	tokens, errs := make([][]uint32, world), make([]error, world)
	master := "file:" + filepath.Join(t.TempDir(), "master")
	var ranks sync.WaitGroup
	for r := range world {
		ranks.Go(func() {
			cfg := hipfabric.Config{Rank: r, World: world, Master: master, OpenTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}
			tokens[r], errs[r] = decodeAs(t.Context(), cfg, w)
		})
	}
	ranks.Wait()
	require.NoError(t, errors.Join(errs...))
	return agreed(t, tokens)
}

func decodeAs(ctx context.Context, cfg hipfabric.Config, w work) ([]uint32, error) {
	g, err := hipfabric.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	tokens, _, err := serve(ctx, g.Host(), g.Control(), share(cfg.Rank, w))
	if err != nil {
		g.Abort(err)
	}
	return tokens, errors.Join(err, g.Close(ctx))
}

// share is what a rank is told: followers learn the work from the plans alone.
func share(rank int, w work) work {
	if rank > 0 {
		w.requests, w.batch, w.steps = 0, 0, 0
	}
	return w
}

func agreed(t *testing.T, tokens [][]uint32) []uint32 {
	for r := range tokens {
		require.Equal(t, tokens[0], tokens[r], "rank %d of %d", r, len(tokens))
	}
	return tokens[0]
}

func TestTokensAreEqualAtEveryWorld(t *testing.T) {
	for _, bf16 := range []bool{false, true} {
		w := work{bf16: bf16, requests: 2, batch: 3, steps: 8}
		want := decode(t, 1, w)
		require.Len(t, want, w.requests*w.batch*w.steps)
		distinct := slices.Clone(want)
		slices.Sort(distinct)
		require.Greater(t, len(slices.Compact(distinct)), len(want)/4, "a model that says one thing proves nothing")
		for _, world := range []int{2, 4} {
			assert.Equal(t, want, decode(t, world, w), "world %d, bf16 %v", world, bf16)
		}
		for _, world := range []int{1, 2, 4} {
			assert.Equal(t, want, decodeOverTCP(t, world, w), "over tcp, world %d, bf16 %v", world, bf16)
		}
	}
}

func TestLogitsOfRandomWeightsAreNearAtEveryWorld(t *testing.T) {
	for _, c := range []struct {
		bf16  bool
		bound float64
	}{
		{false, 1e-3},
		{true, 3e-2}, // a rank's share is rounded to 8 bits before it is summed
	} {
		logits := func(world int) []float32 {
			all := make([][]float32, world)
			fabrictest.Each(t, fabrictest.Groups(t, world), func(g *fabrictest.Group) error {
				m, err := newModel(g.Host, c.bf16, false)
				if err == nil {
					all[g.Host.Rank()], err = m.step([]uint32{3, 141, 59}, 2)
				}
				return err
			})
			return all[world-1]
		}
		want := logits(1)
		for _, world := range []int{2, 4} {
			d := farthest(want, logits(world))
			t.Logf("world %d, bf16 %v: %.2g", world, c.bf16, d)
			assert.Less(t, d, c.bound, "world %d, bf16 %v", world, c.bf16)
		}
	}
}

// farthest is the greatest difference, relative to the greatest value.
func farthest(want, got []float32) float64 {
	var difference, scale float64
	for i := range want {
		difference = max(difference, math.Abs(float64(want[i]-got[i])))
		scale = max(scale, math.Abs(float64(want[i])))
	}
	return difference / scale
}

func TestAWorldThatDoesNotDivideTheModelIsNamed(t *testing.T) {
	_, err := newModel(fabrictest.Groups(t, 3)[0].Host, false, true)
	assert.EqualError(t, err, "world 3 does not divide hidden 256 and vocab 512")
}
