package hipfabric

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// splitAll splits every rank's group at once; how says each rank's color and key.
func splitAll(t testing.TB, groups []*Group, name string, o SplitOptions, how func(rank int) (color, key int)) ([]*Group, []error) {
	children := make([]*Group, len(groups))
	errs := each(len(groups), func(r int) (err error) {
		color, key := how(groups[r].Rank())
		children[r], err = groups[r].Split(t.Context(), name, color, key, o)
		return err
	})
	return children, errs
}

func splits(t testing.TB, groups []*Group, name string, o SplitOptions, how func(rank int) (color, key int)) []*Group {
	t.Helper()
	children, errs := splitAll(t, groups, name, o, how)
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return children
}

func rows(r int) (color, key int)    { return r / 2, r }
func columns(r int) (color, key int) { return r % 2, r }

func TestAGridOfGroupsRunsBothWaysAtOnce(t *testing.T) {
	rounds := 500
	if raceEnabled || testing.Short() {
		rounds = 50
	}
	groups := opened(t, 4, nil)
	tp, pp := splits(t, groups, "tp", SplitOptions{}, rows), splits(t, groups, "pp", SplitOptions{}, columns)
	for r := range 4 {
		assert.Equal(t, []any{fmt.Sprintf("default/tp.%d", r/2), r % 2, 2, r}, []any{tp[r].cfg.Name, tp[r].Rank(), tp[r].World(), tp[r].LocalRank()})
		assert.Equal(t, []any{fmt.Sprintf("default/pp.%d", r%2), r / 2, 2}, []any{pp[r].cfg.Name, pp[r].Rank(), pp[r].World()})
	}
	// A task is a rank in one direction.
	for task, err := range each(8, func(task int) error {
		r := task / 2
		g, others := tp[r], []int{r &^ 1, r | 1}
		if task%2 == 1 {
			g, others = pp[r], []int{r % 2, r%2 + 2}
		}
		for i := range rounds {
			if err := gatherAndSum(g, byte(r), others, i); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err, "task %d", task)
	}
	for r := range 4 {
		assert.Equal(t, uint64(2*rounds), tp[r].Stats().Calls)
		assert.Equal(t, uint64(2), groups[r].Stats().Calls, "a Split is one call of the parent")
	}
	require.NoError(t, errors.Join(closeAll(groups)...))
	for r := range 4 {
		<-tp[r].Done()
		require.NoError(t, tp[r].Err())
		assert.ErrorIs(t, tp[r].Host().Barrier(), fabric.ErrClosed, "closed with its parent")
	}
}

// gatherAndSum gathers the ranks' numbers, mine being me, and sums n of 0 to 20000 values of them.
func gatherAndSum(g *Group, me byte, others []int, round int) error {
	out := make([]byte, g.World())
	if err := g.Host().AllGather(out, []byte{me}); err != nil {
		return err
	}
	want := make([]byte, len(others))
	total := int32(0)
	for i, r := range others {
		want[i] = byte(r)
		total += int32(r)
	}
	if !slices.Equal(out, want) {
		return fmt.Errorf("round %d: gathered %v, want %v", round, out, want)
	}
	in := make([]int32, round*37%20000)
	for i := range in {
		in[i] = int32(me) + int32(i)
	}
	if err := g.Host().AllReduce(fabric.Bytes(in), fabric.Bytes(in), fabric.I32, fabric.Sum); err != nil {
		return err
	}
	for i, v := range in {
		if v != total+int32(len(others)*i) {
			return fmt.Errorf("round %d: sum %d is %d, want %d", round, i, v, total+int32(len(others)*i))
		}
	}
	return nil
}

func TestAPartMayHaveLanesOfItsOwn(t *testing.T) {
	groups := opened(t, 3, nil)
	all := func(r int) (int, int) { return 0, -r }
	closeAll(splits(t, groups, "warm", SplitOptions{}, all))
	files := openFiles()
	part := splits(t, groups, "wide", SplitOptions{Lanes: 3}, all)
	if descriptorsAPart > 0 {
		assert.Equal(t, 3*(2*3+descriptorsAPart), openFiles()-files)
	}
	for r, err := range each(3, func(r int) error {
		for i := range 20 {
			if err := gatherAndSum(part[r], byte(r), []int{2, 1, 0}, 500*i); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err, "rank %d", r)
	}
}

func TestMoreGroupsThanCoresYield(t *testing.T) {
	f := family{groups: map[*Group]struct{}{}}
	assert.False(t, f.spin(0, 1).yield && usableCores() > 1, "the first of one rank")
	for range usableCores() {
		f.add(&Group{})
	}
	policy := f.spin(0, 1)
	assert.True(t, policy.yield, "one more wait than cores may spin")
	assert.Equal(t, spinWhenShort, policy.spinFor)
}
