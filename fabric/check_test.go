package fabric_test

import (
	"fmt"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every refusal names the thing, its value and its bound, moves nothing and uses no number.
func TestBadArgumentsAreRefusedByName(t *testing.T) {
	const rank, world = 1, 3
	f := newFake(rank, world)
	c := fabric.New(f, fabric.Options{})
	b := make([]byte, 256)
	for _, bad := range []struct {
		text string
		err  error
	}{
		{"out has 16 bytes; len(in) is 12", c.AllReduce(b[:16], b[32:44], fabric.F32, fabric.Sum)},
		{"in has 6 bytes, not a multiple of the 4 of one f32", c.AllReduce(b[:6], b[32:38], fabric.F32, fabric.Sum)},
		{"in and out overlap; for all-reduce out may be in itself", c.AllReduce(b[:8], b[4:12], fabric.F32, fabric.Sum)},
		{"dtype 0 is none of the known ones ([u8 i8 i32 i64 f16 bf16 f32 f64])", c.AllReduce(b[:8], b[32:40], 0, fabric.Sum)},
		{"dtype 9 is none", c.AllReduce(b[:8], b[32:40], 9, fabric.Sum)},
		{"reduction 0 is none of the known ones ([sum prod max min avg])", c.AllReduce(b[:8], b[32:40], fabric.F32, 0)},
		{"reduction 6 is none", c.AllReduce(b[:8], b[32:40], fabric.F32, 6)},
		{"reduction avg of i32: avg takes floating-point types only", c.AllReduce(b[:8], b[32:40], fabric.I32, fabric.Avg)},
		{"in has 8 bytes; world * len(out) is 24", c.ReduceScatter(b[:8], b[32:40], fabric.F32, fabric.Sum)},
		{"out has 2 bytes, not a multiple", c.ReduceScatter(b[:2], b[32:40], fabric.F32, fabric.Sum)},
		{"in and out overlap; for reduce-scatter none is allowed", c.ReduceScatter(b[:4], b[:12], fabric.F32, fabric.Sum)},
		{"out has 8 bytes; world * len(in) is 9", c.AllGather(b[:8], b[32:35])},
		{"in and out overlap; for all-gather in may be this rank's own block", c.AllGather(b[:12], b[:4])},
		{"in and out overlap", c.AllGather(b[:12], b[5:9])},
		{"lengths has 2 entries; world 3 needs as many", c.AllGatherV(b[:12], b[32:36], 4, []int{4, 4})},
		{"stride 5: world 3 blocks of it must lie in out's 12 bytes", c.AllGatherV(b[:12], b[32:36], 5, []int{4, 4, 4})},
		{"stride -1", c.AllGatherV(b[:12], b[32:36], -1, []int{4, 4, 4})},
		{"lengths[2] is 5, outside 0..stride 4", c.AllGatherV(b[:12], b[32:36], 4, []int{4, 4, 5})},
		{"lengths[0] is -1, outside 0..stride 4", c.AllGatherV(b[:12], b[32:36], 4, []int{-1, 4, 4})},
		{"in has 3 bytes; lengths[rank] is 4", c.AllGatherV(b[:12], b[32:35], 4, []int{4, 4, 4})},
		{"in and out overlap; for all-gather-v", c.AllGatherV(b[:12], b[:4], 4, []int{4, 4, 4})},
		{"rowBytes is 0; at least 1 is needed", c.AllGatherRows(b[:12], b[32:36], 0)},
		{"in has 4 bytes, not a multiple of rowBytes 3", c.AllGatherRows(b[:12], b[32:36], 3)},
		{"out has 11 bytes; world * len(in) is 12", c.AllGatherRows(b[:11], b[32:36], 2)},
		{"in and out overlap; for all-gather-rows none is allowed", c.AllGatherRows(b[:12], b[4:8], 2)},
		{"root 3 is outside 0..2", c.Broadcast(b[:4], 3)},
		{"root -1 is outside 0..2", c.Broadcast(b[:4], -1)},
		{"in has 4 bytes, not a multiple of world 3", c.AllToAll(b[:4], b[32:36])},
		{"out has 9 bytes; len(in) is 6", c.AllToAll(b[:9], b[32:38])},
		{"in and out overlap; for all-to-all none is allowed", c.AllToAll(b[:6], b[:6])},
		{"outLengths has 2 entries", c.AllToAllV(b[:6], b[32:38], []int{3, 3}, []int{2, 2, 2})},
		{"outLengths sums to 5; out has 6 bytes", c.AllToAllV(b[:6], b[32:38], []int{1, 2, 2}, []int{2, 2, 2})},
		{"outLengths[2] is 3; out has 2 bytes left for it", c.AllToAllV(b[:6], b[32:38], []int{2, 2, 3}, []int{2, 2, 2})},
		{"inLengths[0] is -1", c.AllToAllV(b[:6], b[32:38], []int{2, 2, 2}, []int{-1, 2, 5})},
		{"outLengths[1] is 2 and inLengths[1] is 1", c.AllToAllV(b[:6], b[32:38], []int{2, 2, 2}, []int{3, 1, 2})},
		{"in and out overlap; for all-to-all-v", c.AllToAllV(b[:6], b[:6], []int{2, 2, 2}, []int{2, 2, 2})},
		{"out has 3 bytes; len(in) is 4", c.Exchange(b[:3], b[32:36], 0)},
		{"peer 1 is this rank itself", c.Exchange(b[:4], b[32:36], 1)},
		{"peer 3 is outside 0..2", c.Exchange(b[:4], b[32:36], 3)},
		{"in and out overlap; for exchange none is allowed", c.Exchange(b[:4], b[:4], 0)},
		{"peer -1 is outside 0..2", c.SendRecv(b[:4], -1, b[32:36], 0)},
		{"from 1 is this rank itself", c.SendRecv(b[:4], 0, b[32:36], 1)},
		{"in and out overlap; for send-recv none is allowed", c.SendRecv(b[:4], 0, b[:4], 0)},
		{"peer 1 is this rank itself", c.Send(b[:4], 1)},
		{"peer 9 is outside 0..2", c.Send(b[:4], 9)},
		{"from -2 is outside 0..2", c.Recv(b[:4], -2)},
		{"operation 0 is none of the known ones", begun(c, fabric.Call{})},
		{"operation 99 is none of the known ones", begun(c, fabric.Call{Op: 99})},
		{"alloc of -1 bytes", allocated(c, -1)},
	} {
		require.ErrorIs(t, bad.err, fabric.ErrInvalid, bad.text)
		assert.ErrorContains(t, bad.err, bad.text)
		op := walked(t, bad.err)
		assert.Equal(t, fabric.ScopeCall, op.Scope())
		assert.Equal(t, rank, op.Rank)
	}
	assert.Zero(t, f.begins.Load(), "the transport has seen none of them")
	f.seen = func(c *fabric.Call) { assert.EqualValues(t, 1, c.Seq, "refused calls use no number") }
	require.NoError(t, c.Barrier())
	require.NoError(t, c.Send(nil, 0))
	assert.Empty(t, c.Stats().Failed)
}

func begun(c *fabric.Collective, call fabric.Call) error {
	_, err := c.Begin(call)
	return err
}

func allocated(c *fabric.Collective, n int) error {
	_, err := c.Alloc(n)
	return err
}

// What a transport gets is all that it has to compare and move.
func TestEveryOperationReachesTheTransportChecked(t *testing.T) {
	const rank, world = 1, 3
	f := newFake(rank, world)
	c := fabric.New(f, fabric.Options{})
	b := make([]byte, 256)
	var got fabric.Call
	f.seen = func(call *fabric.Call) { got = *call }
	for _, good := range []struct {
		do    func() error
		class fabric.Class
		bytes int
		peer  int
		from  int
	}{
		{func() error { return c.AllReduce(b[:8], b[32:40], fabric.F32, fabric.Sum) }, fabric.Group, 8, 0, 0},
		{func() error { return c.AllReduce(b[:8], b[:8], fabric.F32, fabric.Avg) }, fabric.Group, 8, 0, 0},
		{func() error { return c.AllReduce(nil, nil, fabric.F32, fabric.Avg) }, fabric.Group, 0, 0, 0},
		{func() error { return c.ReduceScatter(b[:8], b[32:56], fabric.I64, fabric.Max) }, fabric.Group, 24, 0, 0},
		{func() error { return c.AllGather(b[:12], b[32:36]) }, fabric.Group, 4, 0, 0},
		{func() error { return c.AllGather(b[:12], b[4:8]) }, fabric.Group, 4, 0, 0},
		{func() error { return c.AllGather(nil, nil) }, fabric.Group, 0, 0, 0},
		{func() error { return c.AllGatherV(b[:12], b[4:7], 4, []int{0, 3, 4}) }, fabric.Group, 4, 0, 0},
		{func() error { return c.AllGatherV(nil, nil, 0, []int{0, 0, 0}) }, fabric.Group, 0, 0, 0},
		{func() error { return c.AllGatherRows(b[:12], b[32:36], 2) }, fabric.Group, 4, 0, 0},
		{func() error { return c.Broadcast(b[:5], 1) }, fabric.Group, 5, 0, 0},
		{func() error { return c.Broadcast(b[:5], 2) }, fabric.Group, 5, 0, 0},
		{func() error { return c.AllToAll(b[:6], b[32:38]) }, fabric.Group, 6, 0, 0},
		{func() error { return c.AllToAllV(b[:6], b[32:37], []int{1, 2, 3}, []int{3, 2, 0}) }, fabric.Group, 0, 0, 0},
		{func() error { return c.Exchange(b[:4], b[32:36], 2) }, fabric.Pair, 4, 2, 2},
		{func() error { return c.SendRecv(b[:4], 2, b[32:37], 0) }, fabric.Pair, 4, 2, 0},
		{func() error { return c.SendRecv(b[:4], 2, b[32:37], 2) }, fabric.Pair, 4, 2, 2},
		{func() error { return c.Send(b[:4], 0) }, fabric.Pair, 4, 0, -1},
		{func() error { return c.Recv(b[:5], 0) }, fabric.Pair, 5, -1, 0},
		{c.Barrier, fabric.Group, 0, 0, 0},
	} {
		require.NoError(t, good.do())
		what := fmt.Sprintf("%v %+v", got.Op, got)
		assert.Equal(t, good.class, got.Class, what)
		assert.Equal(t, good.bytes, got.Bytes, what)
		assert.NotZero(t, got.Seq+got.FromSeq, what)
		if good.class == fabric.Pair {
			assert.Equal(t, good.peer, got.Peer, what)
			assert.Equal(t, good.from, got.From, what)
		}
	}
}

func TestLengthsAndRowsAreComparedByHash(t *testing.T) {
	f := newFake(0, 2)
	c := fabric.New(f, fabric.Options{})
	b := make([]byte, 64)
	seen := map[uint64]bool{}
	f.seen = func(call *fabric.Call) { seen[call.Hash] = true }
	for _, lengths := range [][]int{{4, 4}, {4, 3}, {4, 5}, {4, 0}} {
		require.NoError(t, c.AllGatherV(b[:20], b[32:36], 8, lengths))
	}
	require.NoError(t, c.AllGatherRows(b[:16], b[32:40], 4))
	require.NoError(t, c.AllGatherRows(b[:16], b[32:40], 8))
	assert.Len(t, seen, 6)
	seen = map[uint64]bool{}
	require.NoError(t, c.AllGatherV(b[:20], b[32:36], 8, []int{4, 4}))
	require.NoError(t, c.AllGatherV(b[:20], b[32:36], 8, []int{4, 4}))
	assert.Len(t, seen, 1)
	assert.False(t, seen[0])
}
