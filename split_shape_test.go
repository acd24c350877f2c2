package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// TestASplitGroupKeepsTheContract runs over two of four ranks, in reversed order, or over five of six: what a world of
// one group is asked is asked of a part.
func TestASplitGroupKeepsTheContract(t *testing.T) {
	fabrictest.Run(t, func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		groups := opened(t, world+1, func(c *Config) { c.Timeout, c.EagerBytes = o.Timeout, fabrictest.PartBytes })
		children := splits(t, groups, "part", SplitOptions{}, func(r int) (color, key int) {
			if r == 1 {
				return NoColor, 0
			}
			return 7, -r
		})
		require.Nil(t, children[1])
		subjects := make([]fabrictest.Subject, world)
		for _, g := range children {
			if g != nil {
				subjects[g.Rank()] = fabrictest.Host(g.Host())
			}
		}
		return subjects
	})
}

func TestKeysOrderTheRanksOfAGroup(t *testing.T) {
	groups := opened(t, 4, nil)
	for name, how := range map[string]struct {
		key  func(rank int) int
		want [4]int // the new rank of each
	}{
		"reversed": {func(r int) int { return -r }, [4]int{3, 2, 1, 0}},
		"equal":    {func(int) int { return 5 }, [4]int{0, 1, 2, 3}},
		"shuffled": {func(r int) int { return []int{math.MaxInt, math.MinInt, 3, -3}[r] }, [4]int{3, 0, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			children := splits(t, groups, name, SplitOptions{}, func(r int) (int, int) { return 0, how.key(r) })
			for r, g := range children {
				assert.Equal(t, how.want[r], g.Rank(), "rank %d", r)
			}
			for r, err := range each(4, func(r int) error {
				out := make([]byte, 4)
				if err := children[r].Host().AllGather(out, []byte{byte(r)}); err != nil {
					return err
				}
				for old, at := range how.want {
					assert.Equal(t, byte(old), out[at], "rank %d", r)
				}
				return children[r].Close(t.Context())
			}) {
				require.NoError(t, err, "rank %d", r)
			}
		})
	}
}

func TestSplitsNest(t *testing.T) {
	groups := opened(t, 8, nil)
	halves := splits(t, groups, "half", SplitOptions{}, func(r int) (int, int) { return r / 4, -r })
	quarters := splits(t, halves, "quarter", SplitOptions{}, func(r int) (int, int) { return r % 2, r })
	single := splits(t, quarters, "one", SplitOptions{}, func(r int) (int, int) { return r, 0 })
	for r := range 8 {
		inHalf := 3 - r%4
		assert.Equal(t, fmt.Sprintf("default/half.%d/quarter.%d", r/4, inHalf%2), quarters[r].cfg.Name)
		assert.Equal(t, []int{inHalf / 2, 2, 0, 1}, []int{quarters[r].Rank(), quarters[r].World(), single[r].Rank(), single[r].World()})
	}
	for task, err := range each(24, func(task int) error { // all three levels at once
		r := task / 3
		for range 20 {
			switch task % 3 {
			case 0:
				if err := gatherAndSum(groups[r], byte(r), []int{0, 1, 2, 3, 4, 5, 6, 7}, 9); err != nil {
					return err
				}
			case 1:
				base := r / 4 * 4
				if err := gatherAndSum(halves[r], byte(r), []int{base + 3, base + 2, base + 1, base}, 9); err != nil {
					return err
				}
			default:
				low := r &^ 2
				if err := gatherAndSum(quarters[r], byte(r), []int{low + 2, low}, 9); err != nil {
					return err
				}
			}
		}
		return single[r].Host().Barrier()
	}) {
		require.NoError(t, err, "task %d", task)
	}
}

func TestASplitRefusesWhatIsOutOfBoundsBeforeAnythingMoves(t *testing.T) {
	groups := opened(t, 2, nil)
	long := strings.Repeat("x", maxName)
	for _, c := range []struct {
		name    string
		color   int
		options SplitOptions
		want    string
	}{
		{"", 0, SplitOptions{}, `name is ""`},
		{"a b", 0, SplitOptions{}, `name is "a b"`},
		{long, 0, SplitOptions{}, "74 bytes; at most 64"},
		{"x", -2, SplitOptions{}, "color is -2; 0 to 2147483647, or -1"},
		{"x", math.MaxInt32 + 1, SplitOptions{}, "color is 2147483648"},
		{"x", 0, SplitOptions{Lanes: -1}, "Lanes is -1; 0 to 64"},
		{"x", 0, SplitOptions{Lanes: 65}, "Lanes is 65"},
		{"x", 0, SplitOptions{Timeout: time.Millisecond}, "Timeout is 1ms; 10ms to 24h"},
	} {
		_, err := groups[0].Split(t.Context(), c.name, c.color, 0, c.options)
		assertSplitError(t, 0, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, c.want)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := groups[0].Split(over, "x", 0, 0, SplitOptions{})
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, errors.Join(each(2, func(r int) error { return groups[r].Host().Barrier() })...), "rank 1 has seen none of it")
}

func assertSplitError(t *testing.T, rank int, err, want error) {
	t.Helper()
	require.ErrorIs(t, err, want, "rank %d", rank)
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, []any{"split", rank}, []any{op.Op, op.Rank})
}

func TestWhatRanksGiveDifferentlyIsAMismatchOnEveryRank(t *testing.T) {
	groups := opened(t, 3, nil)
	for field, odd := range map[string]struct {
		name    string
		options SplitOptions
		want    string
	}{
		"name":     {"pp", SplitOptions{}, `name: rank 0 has "tp", rank 2 has "pp"`},
		"Lanes":    {"tp", SplitOptions{Lanes: 2}, `Lanes: rank 0 has "0", rank 2 has "2"`},
		"Isolated": {"tp", SplitOptions{Isolated: true}, `Isolated: rank 0 has "false", rank 2 has "true"`},
		"Timeout":  {"tp", SplitOptions{Timeout: time.Second}, `Timeout: rank 0 has "0s", rank 2 has "1s"`},
	} {
		t.Run(field, func(t *testing.T) {
			for r, err := range each(3, func(r int) error {
				name, o := "tp", SplitOptions{}
				if r == 2 {
					name, o = odd.name, odd.options
				}
				g, err := groups[r].Split(t.Context(), name, 0, 0, o)
				assert.Nil(t, g)
				return err
			}) {
				assertSplitError(t, r, err, fabric.ErrMismatch)
				assert.ErrorContains(t, err, odd.want)
			}
			require.NoError(t, errors.Join(each(3, func(r int) error { return groups[r].Host().Barrier() })...), "the parent goes on")
		})
	}
}

func TestASplitIsOneCallOfItsParent(t *testing.T) {
	groups := opened(t, 2, nil)
	started, err := groups[0].Host().Begin(fabric.Call{Op: fabric.Barrier})
	require.NoError(t, err)
	_, err = groups[0].Split(t.Context(), "x", 0, 0, SplitOptions{})
	assertSplitError(t, 0, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "in flight")
	require.NoError(t, groups[1].Host().Barrier())
	require.NoError(t, started.Wait())

	first := make(chan error, 1)
	go func() {
		_, err := groups[0].Split(t.Context(), "x", 0, 0, SplitOptions{})
		first <- err
	}()
	require.Eventually(t, func() bool { return groups[0].host.Progress().Running }, 10*time.Second, time.Millisecond)
	_, err = groups[0].Split(t.Context(), "y", 0, 0, SplitOptions{})
	assertSplitError(t, 0, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "in progress")
	_, err = groups[1].Split(t.Context(), "x", 0, 0, SplitOptions{})
	require.NoError(t, err)
	require.NoError(t, <-first)
	splits(t, groups, "again", SplitOptions{}, rows)
}

func TestASplitThatMeetsAnotherCallIsADesync(t *testing.T) {
	groups := opened(t, 2, nil)
	for r, err := range each(2, func(r int) error {
		if r == 0 {
			_, err := groups[0].Split(t.Context(), "x", 0, 0, SplitOptions{})
			return err
		}
		err := groups[1].Host().AllGather(make([]byte, 2*proposalSize), make([]byte, proposalSize))
		if err == nil { // the bytes were right; the next call says what they were not
			err = groups[1].Host().Barrier()
		}
		return err
	}) {
		require.ErrorIs(t, err, fabric.ErrDesync, "rank %d", r)
		assert.ErrorContains(t, err, "rank 0 is in a split, rank 1 in an all-gather")
	}
}

func TestASplitOfAnEndedGroupGivesItsEnd(t *testing.T) {
	groups := opened(t, 2, nil)
	child := splits(t, groups, "x", SplitOptions{}, func(r int) (int, int) { return 0, r })
	require.NoError(t, errors.Join(closeAll(child)...))
	_, err := child[0].Split(t.Context(), "y", 0, 0, SplitOptions{})
	assertSplitError(t, 0, err, fabric.ErrClosed)
	groups[1].Abort(errors.New("enough"))
	for r, g := range groups {
		<-g.Done()
		_, err := g.Split(t.Context(), "y", 0, 0, SplitOptions{})
		assertSplitError(t, r, err, fabric.ErrAborted)
		assert.ErrorContains(t, err, "enough")
	}
	closeAll(groups)
	_, err = groups[0].Split(t.Context(), "y", 0, 0, SplitOptions{})
	require.Error(t, err)
}
