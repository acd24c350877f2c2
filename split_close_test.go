package hipfabric

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestPartsAndWholesCloseInAnyOrder(t *testing.T) {
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	warm := splits(t, opened(t, 2, nil), "warm", SplitOptions{}, rows)
	closeAll(warm)
	closeAll([]*Group{warm[0].parent, warm[1].parent})
	files, goroutines := openFiles(), runtime.NumGoroutine()
	for i := range orders {
		for j := range orders {
			t.Run(fmt.Sprint(orders[i], orders[j]), func(t *testing.T) {
				all := func(r int) (int, int) { return 0, -r }
				whole := opened(t, 2, nil)
				part := splits(t, whole, "part", SplitOptions{Isolated: i%2 == 0}, all)
				below := splits(t, part, "below", SplitOptions{Isolated: i%3 == 0}, all)
				for r, err := range each(2, func(r int) error {
					levels := []*Group{whole[r], part[r], below[r]}
					if err := below[r].Host().Barrier(); err != nil {
						return err
					}
					for n, level := range [][]int{orders[i], orders[j]}[r] {
						if err := levels[level].Close(t.Context()); err != nil {
							return fmt.Errorf("closing %d as number %d: %w", level, n, err)
						}
					}
					for level, g := range levels {
						if err := g.Host().Barrier(); !errors.Is(err, fabric.ErrClosed) {
							return fmt.Errorf("level %d after its end: %w", level, err)
						}
						<-g.Done()
						if err := g.Err(); err != nil {
							return err
						}
					}
					return nil
				}) {
					require.NoError(t, err, "rank %d", r)
				}
			})
		}
	}
	assert.LessOrEqual(t, openFiles(), files, "files")
	assert.EventuallyWithT(t, func(c *assert.CollectT) { assert.LessOrEqual(c, runtime.NumGoroutine(), goroutines+1) }, 10*time.Second, time.Millisecond)
}

func TestClosingAPartLeavesTheRestAlone(t *testing.T) {
	groups := opened(t, 4, nil)
	tp, pp := splits(t, groups, "tp", SplitOptions{}, rows), splits(t, groups, "pp", SplitOptions{}, columns)
	require.NoError(t, errors.Join(closeAll(tp)...))
	for r, err := range each(4, func(r int) error { return errors.Join(groups[r].Host().Barrier(), pp[r].Host().Barrier()) }) {
		require.NoError(t, err, "rank %d", r)
	}
	for _, g := range groups {
		assert.Len(t, g.children, 1)
		assert.Len(t, g.family.groups, 2)
	}
}

func TestAPartsCloseEndsItsCallAndANestedOnes(t *testing.T) {
	groups := opened(t, 2, nil)
	all := func(r int) (int, int) { return 0, r }
	part := splits(t, groups, "part", SplitOptions{Isolated: true}, all)
	below := splits(t, part, "below", SplitOptions{}, all)
	calls := make(chan error, 2)
	for _, g := range []*Group{part[0], below[0]} {
		go func() { calls <- g.Host().Barrier() }()
		require.Eventually(t, func() bool { return g.host.Progress().Running }, 10*time.Second, time.Millisecond)
	}
	require.NoError(t, part[0].Close(t.Context()))
	for range 2 {
		assert.ErrorIs(t, <-calls, fabric.ErrClosed)
	}
	require.NoError(t, groups[0].Err())
}

func TestACloseEndsASplitInProgress(t *testing.T) {
	for name, whole := range map[string]bool{"of the opened group": true, "of a part": false} {
		t.Run(name, func(t *testing.T) {
			groups := opened(t, 2, nil)
			if !whole {
				groups = splits(t, groups, "part", SplitOptions{}, func(r int) (int, int) { return 0, r })
			}
			split := make(chan error, 1)
			go func() {
				_, err := groups[0].Split(t.Context(), "x", 0, 0, SplitOptions{})
				split <- err
			}()
			require.Eventually(t, func() bool { return groups[0].host.Progress().Running }, 10*time.Second, time.Millisecond)
			require.NoError(t, groups[0].Close(t.Context()))
			assertSplitError(t, 0, <-split, fabric.ErrClosed)
		})
	}
}

// What Split's documentation says that a group costs.
func TestAPartCostsWhatIsSaid(t *testing.T) {
	const world, parts = 3, 16
	groups := opened(t, world, nil)
	all := func(r int) (int, int) { return 0, r }
	closeAll(splits(t, groups, "warm", SplitOptions{}, all))
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	settled := func() int { // a goroutine that has said that it is done may still be leaving
		n := runtime.NumGoroutine()
		require.Eventually(t, func() bool { before := n; n = runtime.NumGoroutine(); return n == before }, 10*time.Second, 10*time.Millisecond)
		return n
	}
	files, goroutines, bytes := openFiles(), settled(), heap()
	var made [][]*Group
	for i := range parts {
		made = append(made, splits(t, groups, fmt.Sprint("part", i), SplitOptions{}, all))
	}
	if descriptorsAPart > 0 {
		assert.Equal(t, parts*world*(world-1+descriptorsAPart), openFiles()-files, "descriptors")
	}
	assert.LessOrEqual(t, settled(), goroutines, "goroutines")
	cost := (heap() - bytes) / (parts * world)
	t.Logf("RESULT: %d bytes a group of %d", cost, world)
	assert.LessOrEqual(t, cost, 2*(30<<10+(world-1)*2<<10))
	for _, part := range made {
		require.NoError(t, errors.Join(closeAll(part)...))
	}
	assert.LessOrEqual(t, openFiles(), files)
}
