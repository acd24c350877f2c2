package bootstrap

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestAnyOrderOfStart(t *testing.T) {
	for _, first := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			ctx := testContext(t)
			all := withMaster(configs(t, 3), freePort(t))
			s, errs := make([]*Session, 3), make([]error, 3)
			var wg sync.WaitGroup
			for i := range 3 {
				r := (first + i) % 3
				wg.Go(func() { s[r], errs[r] = Join(ctx, all[r]) })
				pause(ctx, 30*time.Millisecond)
			}
			wg.Wait()
			defer closeAll(s)
			for r := range errs {
				assert.NoError(t, errs[r], "rank %d", r)
			}
		})
	}
}

// sameCause asserts that all errors carry one cause.
func sameCause(t *testing.T, errs []error, kind error, texts ...string) {
	t.Helper()
	var first *fabric.Cause
	for r, err := range errs {
		var c *fabric.Cause
		if !assert.ErrorAs(t, err, &c, "rank %d: %v", r, err) {
			continue
		}
		assert.ErrorIs(t, err, kind, "rank %d", r)
		if first == nil {
			first = c
			for _, text := range texts {
				assert.ErrorContains(t, err, text)
			}
		}
		assert.Equal(t, []any{first.Kind, first.Peer, first.From, first.Text}, []any{c.Kind, c.Peer, c.From, c.Text}, "rank %d", r)
	}
}

func TestEveryRankLearnsOfAMismatch(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *Config)
		texts  []string
	}{
		"setting":         {func(c *Config) { c.Settings[0].Value = "64" }, []string{"Window", `rank 0 has "32"`, `rank 2 has "64"`}},
		"missing setting": {func(c *Config) { c.Settings = nil }, []string{"Window", `rank 0 has "32"`, `rank 2 has nothing`}},
		"more settings":   {func(c *Config) { c.Settings = append(c.Settings, Setting{"X", "1"}) }, []string{"X", `rank 0 has nothing`, `rank 2 has "1"`}},
		"heartbeat":       {func(c *Config) { c.Heartbeat = -1 }, []string{"Heartbeat", "100ms", "-1ns"}},
		"group":           {func(c *Config) { c.Group = "b" }, []string{"Group", `rank 0 has "a"`, `rank 2 has "b"`}},
		"world":           {func(c *Config) { c.World = 4 }, []string{"World", "rank 0 has 3", "rank 2 has 4"}},
		"wire version":    {func(c *Config) { c.version = 7 }, []string{"wire version", "rank 0 has 2", "rank 2 has 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := configs(t, 3)
			for r := range all {
				all[r].Group = "a"
				all[r].Settings = []Setting{{"Window", "32"}}
			}
			tc.change(&all[2])
			_, errs := joinAll(testContext(t), all)
			sameCause(t, errs, fabric.ErrMismatch, tc.texts...)
		})
	}
}

func TestARankThatComesAfterAMismatchIsTold(t *testing.T) {
	ctx := testContext(t)
	all := configs(t, 3)
	all[1].Settings = []Setting{{"Window", "32"}}
	errs := make([]error, 3)
	var wg sync.WaitGroup
	wg.Go(func() { _, errs[0] = Join(ctx, all[0]) })
	_, errs[1] = Join(ctx, all[1])
	_, errs[2] = Join(ctx, all[2])
	wg.Wait()
	sameCause(t, errs, fabric.ErrMismatch, "Window")
}

func TestALiveRankThatIsThereTwiceIsAMismatch(t *testing.T) {
	ctx := testContext(t)
	all := configs(t, 4)
	twice := all[2]
	errs := make([]error, 5)
	var wg sync.WaitGroup
	for i, c := range []Config{all[0], all[2], twice} {
		wg.Go(func() { _, errs[i] = Join(ctx, c) })
	}
	wg.Wait()
	sameCause(t, errs[:3], fabric.ErrMismatch, "Rank: 2 is there twice, at 127.0.0.1:", "and at 127.0.0.1:")
}

func TestADeadRankMayComeAgain(t *testing.T) {
	ctx := testContext(t)
	all := configs(t, 3)
	s, errs := make([]*Session, 3), make([]error, 3)
	var wg sync.WaitGroup
	wg.Go(func() { s[0], errs[0] = Join(ctx, all[0]) })
	short := all[1]
	for range 3 {
		brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		_, err := Join(brief, short)
		cancel()
		require.ErrorIs(t, err, fabric.ErrTimeout)
	}
	for r := 1; r < 3; r++ {
		wg.Go(func() { s[r], errs[r] = Join(ctx, all[r]) })
	}
	wg.Wait()
	defer closeAll(s)
	for r := range errs {
		assert.NoError(t, errs[r], "rank %d", r)
	}
}

func TestADeadRankDoesNotStartAGroup(t *testing.T) {
	ctx := testContext(t)
	all := configs(t, 3)
	s, errs := make([]*Session, 3), make([]error, 3)
	var wg sync.WaitGroup
	wg.Go(func() { s[0], errs[0] = Join(ctx, all[0]) })
	brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	_, err := Join(brief, all[1]) // comes, and dies
	cancel()
	require.Error(t, err)
	wg.Go(func() { s[2], errs[2] = Join(ctx, all[2]) })
	pause(ctx, 100*time.Millisecond)
	wg.Go(func() { s[1], errs[1] = Join(ctx, all[1]) })
	wg.Wait()
	defer closeAll(s)
	for r := range errs {
		assert.NoError(t, errs[r], "rank %d", r)
	}
}

func TestRank0NamesTheMissingAndTellsThoseWhoCame(t *testing.T) {
	all := configs(t, 4)
	all[0].OpenTimeout = 300 * time.Millisecond
	errs := make([]error, 2)
	ctx := testContext(t)
	each(2, func(r int) { _, errs[r] = Join(ctx, all[r]) })
	sameCause(t, errs, fabric.ErrTimeout, "ranks [2 3] have not joined")
}

func TestAnEarlierGroupIsWaitedFor(t *testing.T) {
	ctx := testContext(t)
	all := withMaster(configs(t, 2), freePort(t))
	old := group(t, all)
	again := all[1]
	again.OpenTimeout = 200 * time.Millisecond
	_, err := Join(ctx, again)
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorContains(t, err, "a group is running there")
	assert.NoError(t, old[0].Cause(), "and is not disturbed")

	s, errs := make([]*Session, 2), make([]error, 2)
	var wg sync.WaitGroup
	wg.Go(func() { s[1], errs[1] = Join(ctx, all[1]) })
	pause(ctx, 50*time.Millisecond)
	closeAll(old)
	wg.Go(func() { s[0], errs[0] = Join(ctx, all[0]) })
	wg.Wait()
	defer closeAll(s)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	assert.NotEqual(t, old[0].ID(), s[0].ID())
}
