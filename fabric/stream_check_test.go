package fabric_test

import (
	"math"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onStream is any stream of an engine's own.
const onStream fabric.Stream = 0x7f0000001000

// a and b are any device addresses, far apart.
const a, b fabric.DevPtr = 0x10000, 0x20000

func TestEveryOperationIsQueuedAsItsArgumentsSay(t *testing.T) {
	const rank, world = 1, 3
	f := newFakeStream(rank, world)
	c := fabric.NewStream(f, fabric.Options{})
	var got fabric.Call
	f.queue = func(s fabric.Stream, call *fabric.Call) error {
		assert.Equal(t, onStream, s)
		got = *call
		return nil
	}
	group, pair := func(bytes int) fabric.Numbered { return fabric.Numbered{Class: fabric.Group, Bytes: bytes} },
		func(bytes, from int) fabric.Numbered {
			return fabric.Numbered{Class: fabric.Pair, Bytes: bytes, FromBytes: from}
		}
	lengths := []int{0, 3, 4}
	for _, good := range []struct {
		do   func() error
		want fabric.Call
	}{
		{func() error { return c.AllReduce(onStream, a, b, 3, fabric.F32, fabric.Avg) }, fabric.Call{Op: fabric.AllReduce, DType: fabric.F32, Reduce: fabric.Avg,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 12, OutBytes: 12}, Numbered: group(12)}},
		{func() error { return c.AllReduce(onStream, a, a, 3, fabric.BF16, fabric.Sum) }, fabric.Call{Op: fabric.AllReduce, DType: fabric.BF16, Reduce: fabric.Sum,
			Device: fabric.OnDevice{In: a, Out: a, InBytes: 6, OutBytes: 6}, Numbered: group(6)}},
		{func() error { return c.AllReduce(onStream, 0, 0, 0, fabric.F32, fabric.Sum) }, fabric.Call{Op: fabric.AllReduce, DType: fabric.F32, Reduce: fabric.Sum, Numbered: group(0)}},
		{func() error { return c.ReduceScatter(onStream, a, b, 2, fabric.I64, fabric.Max) }, fabric.Call{Op: fabric.ReduceScatter, DType: fabric.I64, Reduce: fabric.Max,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 48, OutBytes: 16}, Numbered: group(48)}},
		{func() error { return c.AllGather(onStream, a, b, 5) }, fabric.Call{Op: fabric.AllGather,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 5, OutBytes: 15}, Numbered: group(5)}},
		{func() error { return c.AllGather(onStream, a, a+5, 5) }, fabric.Call{Op: fabric.AllGather,
			Device: fabric.OnDevice{In: a + 5, Out: a, InBytes: 5, OutBytes: 15}, Numbered: group(5)}},
		{func() error { return c.AllGatherV(onStream, a, b, 4, lengths) }, fabric.Call{Op: fabric.AllGatherV, Stride: 4, Lengths: lengths,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 3, OutBytes: 12}, Numbered: group(4)}},
		{func() error { return c.AllGatherVDevice(onStream, a, a+8, 8, 0x30004) }, fabric.Call{Op: fabric.AllGatherV, Stride: 8,
			Device: fabric.OnDevice{In: a + 8, Out: a, InBytes: 8, OutBytes: 24, Lengths: 0x30004}, Numbered: group(8)}},
		{func() error { return c.AllGatherRows(onStream, a, b, 6, 3) }, fabric.Call{Op: fabric.AllGatherRows, RowBytes: 3,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 6, OutBytes: 18}, Numbered: fabric.Numbered{Class: fabric.Group, Bytes: 6, Hash: 3}}},
		{func() error { return c.Broadcast(onStream, a, 7, 1) }, fabric.Call{Op: fabric.Broadcast, Root: 1,
			Device: fabric.OnDevice{In: a, InBytes: 7}, Numbered: group(7)}},
		{func() error { return c.Broadcast(onStream, a, 7, 2) }, fabric.Call{Op: fabric.Broadcast, Root: 2,
			Device: fabric.OnDevice{Out: a, OutBytes: 7}, Numbered: group(7)}},
		{func() error { return c.AllToAll(onStream, a, b, 4) }, fabric.Call{Op: fabric.AllToAll,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 12, OutBytes: 12}, Numbered: group(12)}},
		{func() error { return c.AllToAllV(onStream, a, b, lengths, []int{1, 3, 0}) }, fabric.Call{Op: fabric.AllToAllV, Lengths: lengths, InLengths: []int{1, 3, 0},
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 4, OutBytes: 7}, Numbered: group(0)}},
		{func() error { return c.Exchange(onStream, a, b, 4, 2) }, fabric.Call{Op: fabric.Exchange, Peer: 2, From: 2,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 4, OutBytes: 4}, Numbered: pair(4, 4)}},
		{func() error { return c.SendRecv(onStream, b, 4, 2, a, 5, 0) }, fabric.Call{Op: fabric.SendRecv, Peer: 2, From: 0,
			Device: fabric.OnDevice{In: b, Out: a, InBytes: 4, OutBytes: 5}, Numbered: pair(4, 5)}},
		{func() error { return c.Send(onStream, b, 4, 2) }, fabric.Call{Op: fabric.Send, Peer: 2, From: -1,
			Device: fabric.OnDevice{In: b, InBytes: 4}, Numbered: pair(4, 0)}},
		{func() error { return c.Recv(onStream, a, 4, 2) }, fabric.Call{Op: fabric.Recv, Peer: -1, From: 2,
			Device: fabric.OnDevice{Out: a, OutBytes: 4}, Numbered: pair(4, 4)}},
		{func() error { return c.Barrier(onStream) }, fabric.Call{Op: fabric.Barrier, Numbered: group(0)}},
	} {
		require.NoError(t, good.do(), good.want.Op)
		if good.want.Op == fabric.AllGatherV && good.want.Lengths != nil {
			good.want.Hash = got.Hash
		}
		assert.Equal(t, good.want, got)
	}
}

func TestBadDeviceArgumentsAreRefusedByName(t *testing.T) {
	const rank, world = 1, 3
	f := newFakeStream(rank, world)
	c := fabric.NewStream(f, fabric.Options{})
	most := 1 << 40
	for _, bad := range []struct {
		text string
		err  error
	}{
		{"stream 0x0 is the null stream", c.Barrier(0)},
		{"use a stream of your own", c.Barrier(2)},
		{"count is -1; 0 to 274877906944 are possible", c.AllReduce(onStream, a, b, -1, fabric.F32, fabric.Sum)},
		{"count is 4611686018427387905; 0 to 274877906944", c.AllReduce(onStream, a, b, 1<<62+1, fabric.F32, fabric.Sum)},
		{"count is 4611686018427387905; 0 to 91625968981", c.ReduceScatter(onStream, a, b, 1<<62+1, fabric.F32, fabric.Sum)},
		{"dtype 0 is none", c.AllReduce(onStream, a, b, 3, 0, fabric.Sum)},
		{"dtype 99 is none", c.ReduceScatter(onStream, a, b, 3, 99, fabric.Sum)},
		{"reduction avg of i32", c.AllReduce(onStream, a, b, 3, fabric.I32, fabric.Avg)},
		{"in and out overlap; for all-reduce out may be in itself", c.AllReduce(onStream, a, a+4, 3, fabric.F32, fabric.Sum)},
		{"in and out overlap; for reduce-scatter", c.ReduceScatter(onStream, a, a, 3, fabric.F32, fabric.Sum)},
		{"bytes is -5; 0 to", c.AllGather(onStream, a, b, -5)},
		{"bytes is 6148914691236517206; 0 to 366503875925 are possible", c.AllGather(onStream, a, b, math.MaxUint64/3+1)},
		{"in and out overlap; for all-gather in may be this rank's own block of out", c.AllGather(onStream, a, a, 4)},
		{"in of 4 bytes is a nil device address", c.AllGather(onStream, a, 0, 4)},
		{"out of 12 bytes is a nil device address", c.AllGather(onStream, 0, b, 4)},
		{"out of 12 bytes at 0xfffffffffffffffa ends beyond the last address", c.AllGather(onStream, ^fabric.DevPtr(5), b, 4)},
		{"stride is -1", c.AllGatherV(onStream, a, b, -1, []int{0, 0, 0})},
		{"lengths has 2 entries; world 3 needs as many", c.AllGatherV(onStream, a, b, 4, []int{4, 4})},
		{"lengths[2] is 5, outside 0..stride 4", c.AllGatherV(onStream, a, b, 4, []int{4, 4, 5})},
		{"lengths[1] is -4, outside 0..stride 4", c.AllGatherV(onStream, a, b, 4, []int{4, -4, 4})},
		{"lengths is a nil device address", c.AllGatherVDevice(onStream, a, b, 4, 0)},
		{"Device.Lengths is 0x30002; int32 begin at a multiple of 4", c.AllGatherVDevice(onStream, a, b, 4, 0x30002)},
		{"stride is 6148914691236517206", c.AllGatherVDevice(onStream, a, b, math.MaxUint64/3+1, 0x30000)},
		{"rowBytes is 0", c.AllGatherRows(onStream, a, b, 4, 0)},
		{"in has 4 bytes, not a multiple of rowBytes 3", c.AllGatherRows(onStream, a, b, 4, 3)},
		{"root 3 is outside 0..2", c.Broadcast(onStream, a, 4, 3)},
		{"bytes is -1; 0 to 1099511627776", c.Broadcast(onStream, a, -1, 0)},
		{"bytes is 1099511627777; 0 to 1099511627776", c.Broadcast(onStream, a, most+1, 0)},
		{"outLengths[1] is -2", c.AllToAllV(onStream, a, b, []int{1, -2, 3}, []int{1, 1, 1})},
		{"outLengths has 2 entries", c.AllToAllV(onStream, a, b, []int{1, 2}, []int{1, 1, 1})},
		{"inLengths[1] is 9223372036854775807", c.AllToAllV(onStream, a, b, []int{1, 1, 1}, []int{1, math.MaxInt, 1})},
		{"peer 1 is this rank itself", c.Exchange(onStream, a, b, 4, 1)},
		{"sendBytes is -1", c.SendRecv(onStream, a, -1, 0, b, 4, 0)},
		{"recvBytes is -2", c.SendRecv(onStream, a, 1, 0, b, -2, 0)},
		{"peer 9 is outside", c.Send(onStream, a, 4, 9)},
		{"from -1 is outside", c.Recv(onStream, a, 4, -1)},
		{"In and Out are of host memory", c.Queue(onStream, fabric.Call{Op: fabric.AllGather, In: make([]byte, 4)})},
		{"a queued call is whole, and its path cuts it", c.Queue(onStream, fabric.Call{Op: fabric.AllGather, Whole: 4})},
		{"Device.Lengths is 0x30000; it is an all-gather-v's only", c.Queue(onStream, fabric.Call{Op: fabric.Barrier, Device: fabric.OnDevice{Lengths: 0x30000}})},
		{"out has 7 bytes; len(in) is 8", c.Queue(onStream, fabric.Call{Op: fabric.AllReduce, DType: fabric.F32, Reduce: fabric.Sum,
			Device: fabric.OnDevice{In: a, Out: b, InBytes: 8, OutBytes: 7}})},
		{"operation 99 is none", c.Queue(onStream, fabric.Call{Op: 99})},
	} {
		require.ErrorIs(t, bad.err, fabric.ErrInvalid, bad.text)
		assert.ErrorContains(t, bad.err, bad.text)
		assert.Equal(t, fabric.ScopeCall, walked(t, bad.err).Scope())
	}
	_, err := c.Alloc(-1)
	assert.ErrorContains(t, err, "bytes is -1; 0 to 1099511627776 are possible")
	assert.Zero(t, f.queued, "the path has seen none of them")
	require.NoError(t, c.Barrier(onStream))
	assert.Equal(t, uint64(2+41+1), c.Stats().Refused)
}
