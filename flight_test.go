package hipfabric

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func record(op fabric.Op, seq uint64, bytes int, state fabric.State) fabric.Record {
	return fabric.Record{Op: op, Seq: seq, Bytes: bytes, Peer: -1, State: state}
}

func logged(t *testing.T, cause error, rows []flight) map[string]any {
	var buf bytes.Buffer
	logFlight(slog.New(slog.NewJSONHandler(&buf, nil)), cause, rows)
	require.Equal(t, 1, bytes.Count(buf.Bytes(), []byte("\n")), "one record: %s", buf.String())
	var m map[string]any
	require.NoError(t, json.Unmarshal(buf.Bytes(), &m))
	return m
}

func TestTheFlightTableSaysWhoIsWhereMissingAndBehind(t *testing.T) {
	m := logged(t, &fabric.Cause{Kind: fabric.ErrTimeout, Peer: 1, From: 0, Text: "x"}, []flight{
		{rank: 0, records: []fabric.Record{record(fabric.AllGather, 6, 8, fabric.Done), record(fabric.AllGather, 7, 8, fabric.Running)},
			progress: fabric.Progress{Running: true, Op: fabric.AllGather, Seq: 7, GroupSeq: 7, Age: 30 * time.Second, Waiting: 1<<1 | 1<<2}},
		{rank: 1, progress: fabric.Progress{GroupSeq: 6}, records: []fabric.Record{record(fabric.AllGather, 6, 8, fabric.Done)}},
		{rank: 2, missing: "no report: its connection is gone"},
		{rank: 3},
	})
	assert.Equal(t, "2", m["missing"])
	assert.Equal(t, "rank 1 has not called seq 7; of rank 2 it is not known; rank 3 has not called seq 7", m["behind"])
	assert.NotContains(t, m, "disagree")
	assert.Equal(t, "timeout: x", m["err"])
	assert.Equal(t, map[string]any{
		"0": "all-gather seq 7, 8 bytes, running for 30s, waits for 1, 2",
		"1": "all-gather seq 6, 8 bytes, done",
		"2": "no report: its connection is gone",
		"3": "no call yet",
	}, m["ranks"])
}

// at is a rank that has used the group's numbers up to seq.
func at(rank int, seq uint64, records ...fabric.Record) flight {
	return flight{rank: rank, progress: fabric.Progress{GroupSeq: seq}, records: records}
}

func TestTheFlightTableSaysWhoDisagrees(t *testing.T) {
	sum := record(fabric.AllReduce, 7, 8, fabric.Failed)
	sum.DType, sum.Reduce = fabric.F32, fabric.Sum
	m := logged(t, fabric.ErrDesync, []flight{at(0, 7, record(fabric.AllGather, 7, 8, fabric.Failed)), at(1, 7, sum),
		at(2, 8, record(fabric.AllGather, 7, 8, fabric.Done), record(fabric.AllGather, 8, 8, fabric.Running))})
	assert.Equal(t, "seq 7: ranks 0, 2: all-gather of 8 bytes; ranks 1: all-reduce of 8 bytes, sum of f32", m["disagree"])
	assert.NotContains(t, m, "missing")
	assert.NotContains(t, m, "behind")
}

func TestCallsThatDifferInOneFieldDisagree(t *testing.T) {
	whole := record(fabric.AllReduce, 7, 8, fabric.Failed)
	whole.DType, whole.Reduce, whole.Hash = fabric.F32, fabric.Sum, 1
	for name, c := range map[string]struct {
		op     fabric.Op
		change func(*fabric.Record)
		want   string
	}{
		"dtype":     {fabric.AllReduce, func(r *fabric.Record) { r.DType = fabric.I32 }, "ranks 0: all-reduce of 8 bytes, sum of f32; ranks 1: all-reduce of 8 bytes, sum of i32"},
		"reduction": {fabric.ReduceScatter, func(r *fabric.Record) { r.Reduce = fabric.Max }, "ranks 0: reduce-scatter of 8 bytes, sum of f32; ranks 1: reduce-scatter of 8 bytes, max of f32"},
		"lengths":   {fabric.AllGatherV, func(r *fabric.Record) { r.Hash = 2 }, "ranks 0: all-gather-v of 8 bytes, lengths of hash 0000000000000001; ranks 1: all-gather-v of 8 bytes, lengths of hash 0000000000000002"},
		"rows":      {fabric.AllGatherRows, func(r *fabric.Record) { r.Hash = 2 }, "ranks 0: all-gather-rows of 8 bytes in rows of 1; ranks 1: all-gather-rows of 8 bytes in rows of 2"},
		"root":      {fabric.Broadcast, func(r *fabric.Record) { r.Peer = 1 }, "ranks 0: broadcast of 8 bytes from root -1; ranks 1: broadcast of 8 bytes from root 1"},
		"bytes":     {fabric.AllGather, func(r *fabric.Record) { r.Bytes = 9 }, "ranks 0: all-gather of 8 bytes; ranks 1: all-gather of 9 bytes"},
	} {
		mine := whole
		mine.Op = c.op
		other := mine
		c.change(&other)
		assert.Equal(t, "seq 7: "+c.want, logged(t, fabric.ErrDesync, []flight{at(0, 7, mine), at(1, 7, other)})["disagree"], name)
		assert.NotContains(t, logged(t, fabric.ErrDesync, []flight{at(0, 7, mine), at(1, 7, mine)}), "disagree", name)
	}
}

func TestARankIsNotBehindForItsCallsBetweenPairs(t *testing.T) {
	sends := make([]fabric.Record, 8) // all that travel
	for i := range sends {
		sends[i] = record(fabric.Send, uint64(i+1), 8, fabric.Done)
	}
	waits := at(0, 101, record(fabric.AllGather, 101, 8, fabric.Running))
	assert.NotContains(t, logged(t, fabric.ErrTimeout, []flight{waits, at(1, 101, sends...)}), "behind")
	assert.Equal(t, "rank 1 has not called seq 101", logged(t, fabric.ErrTimeout, []flight{waits, at(1, 100, sends...)})["behind"])
}

func TestPairCallsDoNotCountAsTheGroups(t *testing.T) {
	m := logged(t, fabric.ErrTimeout, []flight{
		{rank: 0, records: []fabric.Record{record(fabric.Send, 1, 8, fabric.Running)}},
		{rank: 1, records: []fabric.Record{record(fabric.Barrier, 1, 0, fabric.Done), record(fabric.Send, 4, 8, fabric.Failed)}},
	})
	assert.NotContains(t, m, "behind")
	assert.NotContains(t, m, "disagree")
}
