package fabric_test

import (
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFlightRecorderKeepsTheLastCallsInOrder(t *testing.T) {
	c := fabric.New(newFake(0, 2), fabric.Options{})
	assert.Empty(t, c.Records())
	began := time.Now()
	const calls = fabric.RecordSlots + 44
	for range calls {
		require.NoError(t, c.Barrier())
	}
	records := c.Records()
	require.Len(t, records, fabric.RecordSlots)
	for i, r := range records {
		assert.EqualValues(t, calls-fabric.RecordSlots+i+1, r.Seq)
		assert.Equal(t, fabric.Done, r.State)
		assert.WithinRange(t, r.Begun, began.Add(-time.Second), time.Now().Add(time.Second))
		assert.GreaterOrEqual(t, r.Took, r.Queued)
	}
}

func TestARecordSaysWhatTheCallWasAndHowItEnded(t *testing.T) {
	f := newFake(0, 3)
	c := fabric.New(f, fabric.Options{})
	a, b := make([]byte, 8), make([]byte, 8)
	require.NoError(t, c.Exchange(a, b, 2))
	require.NoError(t, c.Recv(a[:5], 1))
	require.NoError(t, c.Broadcast(a, 1))
	require.NoError(t, c.AllReduce(a, b, fabric.F32, fabric.Sum))
	s, err := c.Begin(fabric.Call{Op: fabric.Send, In: a, Peer: 1})
	require.NoError(t, err)
	var texts []string
	for _, r := range c.Records() {
		texts = append(texts, r.String())
	}
	assert.Equal(t, []string{
		"exchange seq 1, 8 bytes, peer 2, done", "recv seq 1, 5 bytes, peer 1, done", "broadcast seq 1, 8 bytes, peer 1, done",
		"all-reduce seq 2, 8 bytes, done", "send seq 1, 8 bytes, peer 1, running",
	}, texts)
	assert.Zero(t, c.Records()[4].Took)
	assert.Equal(t, []any{fabric.F32, fabric.Sum}, []any{c.Records()[3].DType, c.Records()[3].Reduce})
	f.poll = func() (bool, error) { return false, timeout(1, "nothing moved") }
	require.Error(t, s.Wait())
	assert.Equal(t, fabric.Failed, c.Records()[4].State)
	assert.Equal(t, "state(9)", fabric.State(9).String())
}

func TestProgressIsTheCallInFlightOrTheLast(t *testing.T) {
	f := newFake(0, 3)
	f.waiting = 0b110
	c := fabric.New(f, fabric.Options{})
	assert.Equal(t, fabric.Progress{Peer: -1}, c.Progress())
	require.NoError(t, c.Barrier())
	s, err := c.Begin(fabric.Call{Op: fabric.Recv, Out: make([]byte, 5), From: 2})
	require.NoError(t, err)
	p := c.Progress()
	assert.GreaterOrEqual(t, p.Age, time.Duration(0))
	p.Age = 0
	assert.Equal(t, fabric.Progress{Running: true, Op: fabric.Recv, Class: fabric.Pair, Seq: 1, Bytes: 5, Peer: 2, Waiting: 0b110, Calls: 1, GroupSeq: 1}, p)
	require.NoError(t, s.Wait())
	p = c.Progress()
	p.Age = 0
	assert.Equal(t, fabric.Progress{Op: fabric.Recv, Class: fabric.Pair, Seq: 1, Bytes: 5, Peer: 2, Calls: 2, GroupSeq: 1}, p)
	assert.Zero(t, c.Stats().Bytes, "a recv brings nothing")
}
