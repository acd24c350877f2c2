package fabric_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARecordHasAllThatRanksCompare(t *testing.T) {
	c := fabric.New(newFake(0, 2), fabric.Options{})
	out, in := make([]byte, 16), make([]byte, 8)
	require.NoError(t, c.AllGatherV(out, in[:3], 8, []int{3, 5}))
	require.NoError(t, c.AllGatherV(out, in[:3], 8, []int{3, 6}))
	require.NoError(t, c.AllGatherRows(out, in, 4))
	require.NoError(t, c.Barrier())
	s, err := c.Begin(fabric.Call{Op: fabric.AllGather, In: in, Out: out, DType: fabric.F32, Reduce: fabric.Sum})
	require.NoError(t, err)
	require.NoError(t, s.Wait())
	r := c.Records()
	assert.NotZero(t, r[0].Hash)
	assert.NotEqual(t, r[0].Hash, r[1].Hash)
	assert.EqualValues(t, 4, r[2].Hash)
	assert.Zero(t, r[3].Hash)
	assert.Zero(t, r[4].DType, "what the operation does not take is not recorded")
	assert.Zero(t, r[4].Reduce)
}

func TestTheGroupsPlaceIsKnownAfterCallsBetweenPairs(t *testing.T) {
	c := fabric.New(newFake(0, 2), fabric.Options{})
	assert.Zero(t, c.Progress().GroupSeq)
	for range 3 {
		require.NoError(t, c.Barrier())
	}
	for range fabric.RecordSlots + 1 {
		require.NoError(t, c.Send(make([]byte, 4), 1))
	}
	assert.EqualValues(t, 3, c.Progress().GroupSeq)
}
