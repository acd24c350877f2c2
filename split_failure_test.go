package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// ended waits for a group's cause.
func ended(t *testing.T, g *Group) *fabric.Cause {
	t.Helper()
	select {
	case <-g.Done():
	case <-time.After(30 * time.Second):
		require.FailNow(t, "the group goes on", "%s rank %d", g.cfg.Name, g.Rank())
	}
	var cause *fabric.Cause
	require.ErrorAs(t, g.Err(), &cause)
	return cause
}

// bare is what ranks share of a cause.
func bare(c *fabric.Cause) fabric.Cause {
	return fabric.Cause{Kind: c.Kind, Peer: c.Peer, From: c.From, Text: c.Text, Group: c.Group}
}

func TestAFailureOfAPartEndsAllWithOneCause(t *testing.T) {
	groups := opened(t, 4, nil)
	tp, pp := splits(t, groups, "tp", SplitOptions{}, rows), splits(t, groups, "pp", SplitOptions{}, columns)
	waiting := make(chan []error, 1)
	go func() { // the others are in calls of the parent and of the other split
		waiting <- each(4, func(r int) error {
			if r < 2 {
				return pp[r].Host().Barrier()
			}
			return groups[r].Host().Barrier()
		})
	}()
	errs := each(2, func(i int) error { // ranks 2 and 3, which are 0 and 1 here
		return tp[2+i].Host().AllGather(make([]byte, 2*(1+i)), make([]byte, 1+i))
	})
	want := bare(ended(t, groups[0]))
	assert.ErrorIs(t, want.Kind, fabric.ErrDesync)
	assert.Equal(t, "default/tp.1", want.Group)
	assert.ElementsMatch(t, []int{2, 3}, []int{want.Peer, want.From}, "of the opened group's ranks")
	for r, g := range groups {
		assert.Equal(t, want, bare(ended(t, g)), "rank %d", r)
		other := bare(ended(t, pp[r])) // columns: ranks 0, 2 and 1, 3
		wantPeer, wantFrom := -1, -1
		text := fmt.Sprintf("rank %d of group %q: %s", want.Peer, "default", want.Text)
		if r%2 == want.Peer%2 {
			wantPeer, text = 1, want.Text
		}
		if r%2 == want.From%2 {
			wantFrom = 1
		}
		assert.Equal(t, fabric.Cause{Kind: want.Kind, Peer: wantPeer, From: wantFrom, Text: text, Group: want.Group}, other, "rank %d", r)
	}
	for i, err := range errs {
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, []any{"default/tp.1", i, want.Peer - 2, want.From - 2}, []any{op.Group, op.Rank, op.Peer, op.From})
		assert.Equal(t, fabric.Cause{Kind: want.Kind, Peer: want.Peer - 2, From: want.From - 2, Text: want.Text, Group: want.Group}, bare(ended(t, tp[2+i])))
		assert.ErrorContains(t, err, `desync in group "default/tp.1"`)
	}
	for r, err := range <-waiting {
		require.ErrorIs(t, err, fabric.ErrDesync, "rank %d", r)
	}
}

func TestAnIsolatedFailureEndsThePartAlone(t *testing.T) {
	for kind, fail := range map[string]struct {
		end  func(g *Group) error // by both members at once
		want error
		text string
	}{
		"abort": {func(g *Group) error {
			if g.Rank() == 1 {
				g.Abort(errors.New("no such expert"))
			}
			return g.Host().Barrier()
		}, fabric.ErrAborted, "no such expert"},
		"desync": {func(g *Group) error {
			return g.Host().AllGather(make([]byte, 2*(1+g.Rank())), make([]byte, 1+g.Rank()))
		}, fabric.ErrDesync, "all-gather"},
		"timeout": {func(g *Group) error {
			if g.Rank() == 1 {
				<-g.Done()
			}
			return g.Host().Barrier()
		}, fabric.ErrTimeout, "1"},
		"a member that closes early": {func(g *Group) error {
			if g.Rank() == 1 {
				_ = g.Close(context.Background())
				return &fabric.OpError{Err: fabric.ErrPeerFailed}
			}
			return g.Host().Barrier()
		}, fabric.ErrPeerFailed, ""},
	} {
		t.Run(kind, func(t *testing.T) {
			groups := opened(t, 4, nil)
			tp := splits(t, groups, "tp", SplitOptions{Isolated: true, Timeout: 100 * time.Millisecond}, rows)
			pp := splits(t, groups, "pp", SplitOptions{}, columns)
			below := splits(t, tp, "below", SplitOptions{}, func(r int) (int, int) { return 0, r })
			for r, err := range each(2, func(i int) error { return fail.end(tp[2+i]) }) {
				require.ErrorIs(t, err, fail.want, "rank %d", r)
				if kind != "a member that closes early" {
					assert.ErrorContains(t, err, fail.text)
				}
			}
			want := bare(ended(t, tp[2]))
			assert.Equal(t, "default/tp.1", want.Group)
			for _, g := range []*Group{tp[2], tp[3], below[2], below[3]} {
				if kind == "a member that closes early" && g.session == tp[3].session {
					continue
				}
				assert.Equal(t, want, bare(ended(t, g)), "%s", g.cfg.Name)
				_, err := g.Split(t.Context(), "x", 0, 0, SplitOptions{})
				require.ErrorIs(t, err, fail.want)
			}
			for r, err := range each(4, func(r int) error {
				if r < 2 {
					if err := below[r].Host().Barrier(); err != nil {
						return err
					}
				}
				return errors.Join(groups[r].Host().Barrier(), pp[r].Host().Barrier(), groups[r].Err())
			}) {
				require.NoError(t, err, "rank %d: all else goes on", r)
			}
			again := splits(t, groups, "tp", SplitOptions{Isolated: true}, rows) // and a new one takes its place
			require.NoError(t, errors.Join(each(4, func(r int) error { return again[r].Host().Barrier() })...))
		})
	}
}

func TestAFailureBelowAnIsolatedGroupEndsThere(t *testing.T) {
	groups := opened(t, 4, nil)
	outer := splits(t, groups, "outer", SplitOptions{Isolated: true}, func(r int) (int, int) { return 0, -r })
	inner := splits(t, outer, "inner", SplitOptions{}, rows)
	inner[1].Abort(errors.New("deep"))
	for r := range 4 {
		for _, g := range []*Group{outer[r], inner[r]} {
			cause := ended(t, g)
			assert.Equal(t, []any{"deep", "default/outer.0/inner.1", -1}, []any{cause.Text, cause.Group, cause.Peer}, "rank %d", r)
		}
		assert.Equal(t, 2, ended(t, outer[r]).From, "rank 1 of four in reversed order")
	}
	require.NoError(t, errors.Join(each(4, func(r int) error { return groups[r].Host().Barrier() })...))
}

func TestAnIsolatedFailureWhileAllFailEndsInOneCauseEach(t *testing.T) {
	groups := opened(t, 4, nil)
	for range 20 {
		part := splits(t, groups, "part", SplitOptions{Isolated: true}, func(r int) (int, int) { return 0, -r })
		each(4, func(r int) error { part[r].Abort(fmt.Errorf("rank %d", r)); return nil })
		want := bare(ended(t, part[0]))
		for _, g := range part {
			assert.Equal(t, want, bare(ended(t, g)))
		}
		closeAll(part)
	}
	require.NoError(t, errors.Join(each(4, func(r int) error { return groups[r].Host().Barrier() })...))
}

func TestARankThatCannotOpenItsPartFailsTheSplitOnAll(t *testing.T) {
	groups := opened(t, 4, nil)
	eager := groups[3].cfg.EagerBytes
	for range 3 {
		groups[3].cfg.EagerBytes = -1
		children, errs := splitAll(t, groups, "x", SplitOptions{}, rows)
		for r, err := range errs {
			assert.Nil(t, children[r])
			assertSplitError(t, r, err, fabric.ErrInvalid)
			assert.ErrorContains(t, err, `rank 3 could not open its part of group "default/x.1": invalid: EagerBytes is -1`, "rank %d", r)
			var op *fabric.OpError
			require.ErrorAs(t, err, &op)
			assert.Equal(t, []int{3, 3}, []int{op.Peer, op.From}, "rank %d", r)
		}
		require.NoError(t, errors.Join(each(4, func(r int) error { return groups[r].Host().Barrier() })...), "the parent is as it was")
		groups[3].cfg.EagerBytes = eager
		closeAll(splits(t, groups, "x", SplitOptions{}, rows))
	}
}

func TestAContextThatEndsInASplitEndsItAlikeOnAll(t *testing.T) {
	groups := opened(t, 4, nil)
	outcomes := map[bool]int{}
	for round := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		met := groups[3].Stats().Calls + 1
		go func() { // from when the ranks have met, at any of what follows
			for groups[3].Stats().Calls < met {
				runtime.Gosched()
			}
			<-time.After(time.Duration(round) * 50 * time.Microsecond)
			cancel()
		}()
		children := make([]*Group, 4)
		errs := each(4, func(r int) (err error) {
			mine := t.Context()
			if r == 3 {
				mine = ctx
			}
			children[r], err = groups[r].Split(mine, "x", r/2, -r, SplitOptions{})
			return err
		})
		outcomes[errs[0] == nil]++
		for r, err := range errs {
			if errs[0] == nil {
				require.NoError(t, err, "round %d, rank %d", round, r)
				continue
			}
			assertSplitError(t, r, err, fabric.ErrAborted)
			require.ErrorContains(t, err, "cancel", "round %d, rank %d", round, r)
		}
		if errs[0] == nil {
			require.NoError(t, errors.Join(each(4, func(r int) error { return children[r].Host().Barrier() })...))
		}
		closeAll(children)
		<-ctx.Done()
	}
	t.Logf("made: %d, ended: %d", outcomes[true], outcomes[false])
	require.NoError(t, errors.Join(each(4, func(r int) error { return groups[r].Host().Barrier() })...))
}

func TestAGroupsAbortEndsItsParts(t *testing.T) {
	groups := opened(t, 4, nil)
	tp := splits(t, groups, "tp", SplitOptions{Isolated: true}, func(r int) (int, int) { return r / 2, -r })
	waiting := make(chan []error, 1)
	go func() {
		waiting <- each(2, func(i int) error { return tp[2*i].Host().Barrier() }) // ranks 1 and 3 do not come
	}()
	groups[1].Abort(errors.New("enough"))
	for i, err := range <-waiting {
		require.ErrorIs(t, err, fabric.ErrAborted)
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, []any{1, []int{0, -1}[i]}, []any{op.Rank, op.From})
	}
	for r := range 4 {
		assert.Equal(t, "enough", ended(t, tp[r]).Text)
		assert.Empty(t, ended(t, tp[r]).Group)
	}
}
