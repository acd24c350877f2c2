package hipfabric

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestRanksThatMeetGatherSumAndTalk(t *testing.T) {
	for world := 1; world <= 5; world++ {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			groups := opened(t, world, nil)
			errs := each(world, func(r int) error { return gatherSumTalk(t, groups[r]) })
			for r, err := range errs {
				require.NoError(t, err, "rank %d", r)
			}
			for r, err := range closeAll(groups) {
				require.NoError(t, err, "rank %d", r)
			}
		})
	}
}

func gatherSumTalk(t *testing.T, g *Group) error {
	assert.Equal(t, []Path{{Name: "tcp", Chosen: true, Reason: "every rank has it"}}, g.Paths())
	assert.NoError(t, g.Err())
	want := make([]byte, g.World())
	for r := range want {
		want[r] = byte(r + 1)
	}
	out := make([]byte, g.World())
	if err := g.Host().AllGather(out, []byte{byte(g.Rank() + 1)}); err != nil {
		return err
	}
	assert.Equal(t, want, out)
	sum := []float32{float32(g.Rank()), 1}
	if err := g.Host().AllReduce(fabric.Bytes(sum), fabric.Bytes(sum), fabric.F32, fabric.Sum); err != nil {
		return err
	}
	w := float32(g.World())
	assert.Equal(t, []float32{w * (w - 1) / 2, w}, sum)
	if g.Rank() == 0 {
		if err := g.Control().Broadcast(t.Context(), []byte("plan")); err != nil {
			return err
		}
	} else {
		buf := make([]byte, 16)
		n, from, err := g.Control().Recv(t.Context(), buf)
		if err != nil {
			return err
		}
		assert.Equal(t, "plan", string(buf[:n]))
		assert.Zero(t, from)
	}
	if err := g.Control().Barrier(t.Context()); err != nil {
		return err
	}
	assert.Equal(t, uint64(2), g.Stats().Calls)
	return nil
}

func TestAWorldOfOneNeedsNobody(t *testing.T) {
	g, err := Open(t.Context(), Config{World: 1})
	require.NoError(t, err)
	require.NoError(t, gatherSumTalk(t, g))
	require.NoError(t, g.Close(t.Context()))
}

func TestSixtyFourRanksOfOneProcessOpen(t *testing.T) {
	began := time.Now()
	groups, errs := openAll(t.Context(), configs(t, fabric.MaxWorld, nil))
	took := time.Since(began)
	t.Cleanup(func() { closeAll(groups) })
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	t.Logf("RESULT: 64 ranks opened in %v", took)
	for r, err := range each(len(groups), func(r int) error { return groups[r].Host().Barrier() }) {
		require.NoError(t, err, "rank %d", r)
	}
	bound := 15 * time.Second // ten times what a busy machine takes
	if raceEnabled {
		bound *= 5
	}
	assert.Less(t, took, bound)
}

func TestOpenAndCloseLeakNothing(t *testing.T) {
	rounds := 200
	if raceEnabled || testing.Short() {
		rounds = 20
	}
	var goroutines int
	var files int
	for i := range rounds {
		groups, errs := openAll(t.Context(), configs(t, 2, nil))
		require.NoError(t, errors.Join(errs...))
		require.NoError(t, errors.Join(each(2, func(r int) error { return groups[r].Host().Barrier() })...))
		require.NoError(t, errors.Join(closeAll(groups)...))
		if i == 0 { // what the runtime opens once stays
			goroutines = runtime.NumGoroutine()
			files = openFiles()
		}
	}
	left := openFiles()
	assert.LessOrEqual(t, left, files, "files")
	// A goroutine that has said that it is done may still be leaving.
	assert.EventuallyWithT(t, func(c *assert.CollectT) { assert.LessOrEqual(c, runtime.NumGoroutine(), goroutines+1) }, 10*time.Second, time.Millisecond)
}

func TestAbortEndsEveryRankWithOneCause(t *testing.T) {
	groups := opened(t, 3, nil)
	errs := each(3, func(r int) error {
		if r == 1 {
			groups[1].Abort(errors.New("out of tokens"))
			return groups[1].Host().Barrier()
		}
		return groups[r].Host().AllGather(make([]byte, 3), make([]byte, 1))
	})
	for r, err := range errs {
		require.ErrorIs(t, err, fabric.ErrAborted, "rank %d", r)
		assert.ErrorContains(t, err, "out of tokens")
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, r, op.Rank)
		assert.Equal(t, 1, op.From, "rank %d says who aborted", r)
		<-groups[r].Done()
		assert.EqualError(t, groups[r].Err(), "aborted: out of tokens")
		assert.ErrorIs(t, groups[r].Host().Barrier(), fabric.ErrAborted, "every later call returns the first cause")
	}
}

func TestAClosedGroupRefusesAndClosesOnlyOnce(t *testing.T) {
	groups := opened(t, 2, nil)
	for r, err := range closeAll(groups) {
		require.NoError(t, err, "rank %d", r)
		<-groups[r].Done()
		require.NoError(t, groups[r].Err())
		require.NoError(t, groups[r].Close(t.Context()))
		assert.ErrorIs(t, groups[r].Host().Barrier(), fabric.ErrClosed)
		assert.ErrorIs(t, groups[r].Host().Barrier(), os.ErrClosed)
		groups[r].Abort(errors.New("late"))
	}
}

func TestARankThatLeavesEarlyIsNamed(t *testing.T) {
	groups := opened(t, 3, nil)
	require.NoError(t, groups[2].Close(t.Context()))
	for r, err := range each(2, func(r int) error { return groups[r].Host().Barrier() }) {
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, 2, op.Peer)
		assert.ErrorContains(t, err, "rank 2 left the group")
	}
}

func TestALiveGroupsStatusSaysWhoIsWhere(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	groups := opened(t, 3, func(c *Config) {
		c.Timeout = NoTimeout
		if c.Rank == 0 {
			c.StatusSocket = socket
		}
	})
	require.NoError(t, errors.Join(each(3, func(r int) error { return groups[r].Host().Broadcast(make([]byte, 1000), 0) })...))
	waiting := make(chan []error, 1)
	go func() { // rank 2 does not come
		waiting <- each(2, func(r int) error { return groups[r].Host().AllGather(make([]byte, 24), make([]byte, 8)) })
	}()
	var s Status
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	seen := func() bool { // both wait, and their heartbeats have said so
		if s, _ = ReadStatus(t.Context(), socket); len(s.Ranks) != 3 {
			return false
		}
		return len(s.Ranks[0].WaitingFor) == 1 && len(s.Ranks[1].WaitingFor) == 1 && s.Ranks[2].Calls == 1
	}
	for limit := time.After(20 * time.Second); !seen(); {
		select {
		case <-poll.C:
		case <-limit:
			require.FailNow(t, "no status", "%+v", s)
		}
	}
	assert.Equal(t, []any{"default", 0, 3, ""}, []any{s.Group, s.Rank, s.World, s.Cause})
	for r := range 2 {
		assert.True(t, s.Ranks[r].Running, "rank %d", r)
		assert.Equal(t, []any{"ok", "all-gather", uint64(2), 8, []int{2}, -1}, []any{s.Ranks[r].State, s.Ranks[r].Op, s.Ranks[r].Seq,
			s.Ranks[r].CallBytes, s.Ranks[r].WaitingFor, s.Ranks[r].Peer}, "rank %d", r)
	}
	assert.Equal(t, []any{false, "broadcast", uint64(1)}, []any{s.Ranks[2].Running, s.Ranks[2].Op, s.Ranks[2].Seq}, "its last call")
	assert.Equal(t, uint64(1), s.Calls)
	require.Len(t, s.Peers, 2)
	assert.Greater(t, s.Peers[1].SentBytes, uint64(1000))

	groups[2].Abort(errors.New("enough"))
	for r, err := range <-waiting {
		require.ErrorIs(t, err, fabric.ErrAborted, "rank %d", r)
	}
	s, err := ReadStatus(t.Context(), socket)
	require.NoError(t, err)
	assert.Equal(t, "aborted: enough", s.Cause)
}
