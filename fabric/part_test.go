package fabric_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made makes a call to its end.
func made(c *fabric.Collective, call fabric.Call) error {
	s, err := c.Begin(call)
	if err != nil {
		return err
	}
	return s.Wait()
}

func TestPartsAreComparedByTheWholeAndKeepItsNumber(t *testing.T) {
	f := newFake(0, 3)
	c := fabric.New(f, fabric.Options{})
	b := make([]byte, 64)
	var got fabric.Call
	f.seen = func(call *fabric.Call) { got = *call }
	require.NoError(t, c.Barrier())
	hashes := map[uint64]bool{}
	for part := range uint32(3) {
		require.NoError(t, made(c, fabric.Call{Op: fabric.AllReduce, DType: fabric.F32, Reduce: fabric.Sum, In: b[:8], Out: b[:8], Whole: 20, Part: part}))
		assert.Equal(t, []any{uint64(2), 20, part}, []any{got.Seq, got.Bytes, got.Part})
		hashes[got.Hash] = true
	}
	assert.Len(t, hashes, 3, "the part is compared too")
	require.NoError(t, c.Barrier())
	assert.EqualValues(t, 3, got.Seq)
	for part := range uint32(2) {
		require.NoError(t, made(c, fabric.Call{Op: fabric.Exchange, Peer: 2, In: b[:8], Out: b[8:16], Whole: 16, Part: part}))
		assert.Equal(t, []uint64{1, 1, 16, 16}, []uint64{got.Seq, got.FromSeq, uint64(got.Bytes), uint64(got.FromBytes)})
	}
	require.NoError(t, c.Send(b[:3], 2))
	assert.Equal(t, []any{uint64(2), 3}, []any{got.Seq, got.Bytes})

	var texts []string
	for _, r := range c.Records()[1:4] {
		texts = append(texts, r.String())
		assert.Zero(t, r.Hash)
	}
	assert.Equal(t, []string{"all-reduce seq 2, 20 bytes, done", "all-reduce seq 2, 20 bytes, part 1, done", "all-reduce seq 2, 20 bytes, part 2, done"}, texts)
	s := c.Stats()
	assert.Equal(t, []uint64{5, 3*8 + 2*8 + 3}, []uint64{s.Calls, s.Bytes}, "a call counts once, its bytes all")
}

func TestTheHalvesOfACutSendRecvEndApart(t *testing.T) {
	f := newFake(0, 3)
	c := fabric.New(f, fabric.Options{})
	b := make([]byte, 64)
	var got fabric.Call
	f.seen = func(call *fabric.Call) { got = *call }
	call := fabric.Call{Op: fabric.SendRecv, Peer: 1, From: 2, In: b[:8], Out: b[8:16], Whole: 8, FromWhole: 12}
	require.NoError(t, made(c, call))
	assert.Equal(t, []int{8, 12}, []int{got.Bytes, got.FromBytes})
	call.Part, call.Peer, call.In, call.Out = 1, -1, nil, b[8:12]
	require.NoError(t, made(c, call))
	assert.False(t, got.Sends())
	assert.True(t, got.Receives())
	assert.Equal(t, []uint64{1, 1}, []uint64{got.Seq, got.FromSeq})
	require.NoError(t, c.SendRecv(b[:1], 1, b[1:2], 2))
	assert.Equal(t, []uint64{2, 2}, []uint64{got.Seq, got.FromSeq})
}

func TestBadPartsAreRefusedByName(t *testing.T) {
	f := newFake(1, 2)
	c := fabric.New(f, fabric.Options{})
	b := make([]byte, 64)
	for text, call := range map[string]fabric.Call{
		"whole is -1 and fromWhole 0 bytes":                                         {Op: fabric.AllGather, In: b[:4], Out: b[8:16], Whole: -1},
		"fromWhole is 8; it is a send-recv's only":                                  {Op: fabric.AllGather, In: b[:4], Out: b[8:16], Whole: 4, FromWhole: 8},
		"part 1 of a call without a whole":                                          {Op: fabric.AllGather, In: b[:4], Out: b[8:16], Part: 1},
		"a barrier has no parts; whole is 4":                                        {Op: fabric.Barrier, Whole: 4},
		"a part has 4 bytes; all of the call has 3":                                 {Op: fabric.AllGather, In: b[:4], Out: b[8:16], Whole: 3},
		"out has 4 bytes; all of the call has 3":                                    {Op: fabric.Recv, Out: b[:4], Whole: 3},
		"out has 5 bytes; all of the call has 4":                                    {Op: fabric.SendRecv, In: b[:4], Out: b[8:13], Whole: 9, FromWhole: 4},
		"a part of a send-recv that neither sends nor receives":                     {Op: fabric.SendRecv, Peer: -1, From: -1, Whole: 3},
		"in of a call that sends nothing has 4 bytes":                               {Op: fabric.SendRecv, Peer: -1, In: b[:4], Out: b[8:12], Whole: 9, FromWhole: 9},
		"peer -1 is outside 0..1":                                                   {Op: fabric.SendRecv, Peer: -1, In: b[:4], Out: b[8:12]},
		"part 1 of all-gather, of 8 bytes, does not follow the last call: op(0) pa": {Op: fabric.AllGather, In: b[:4], Out: b[8:16], Whole: 8, Part: 1},
	} {
		err := made(c, call)
		require.ErrorIs(t, err, fabric.ErrInvalid, text)
		assert.ErrorContains(t, err, text)
	}
	assert.Zero(t, f.begins.Load())
	part := fabric.Call{Op: fabric.AllGather, In: b[:4], Out: b[8:16], Whole: 12}
	require.NoError(t, made(c, part))
	for _, spoil := range []func(p *fabric.Call){
		func(p *fabric.Call) { p.Part = 2 },
		func(p *fabric.Call) { p.Whole = 16 },
		func(p *fabric.Call) { p.Op, p.Out, p.Root = fabric.Broadcast, nil, 1 },
	} {
		bad := part
		bad.Part = 1
		spoil(&bad)
		assert.ErrorContains(t, made(c, bad), "does not follow the last call: all-gather part 0, of 12 bytes")
	}
	part.Part = 1
	require.NoError(t, made(c, part))
}

func TestTheCauseNamesThePartThatFailed(t *testing.T) {
	f := newFake(0, 2)
	f.poll = func() (bool, error) { return true, nil }
	a := &arbiter{}
	c := fabric.New(f, fabric.Options{Arbiter: a})
	part := fabric.Call{Op: fabric.Broadcast, In: make([]byte, 4), Whole: 8}
	require.NoError(t, made(c, part))
	saw := timeout(1, "nothing moved")
	saw.Part = 9 // of what the path cut the part into
	f.poll = func() (bool, error) { return false, saw }
	part.Part = 1
	op := walked(t, made(c, part))
	assert.Equal(t, []any{uint32(1), uint64(1)}, []any{op.Part, op.Seq})
	assert.ErrorContains(t, op, "broadcast seq 1 part 1, rank 0, peer 1")
	assert.EqualValues(t, 9, saw.Part, "the transport's cause is not written to")
	assert.EqualValues(t, 1, fabric.CauseOf(a.reports[0]).Part, "the others hear it too")
}
