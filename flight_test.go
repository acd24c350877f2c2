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
			progress: fabric.Progress{Running: true, Op: fabric.AllGather, Seq: 7, Age: 30 * time.Second, Waiting: 1<<1 | 1<<2}},
		{rank: 1, records: []fabric.Record{record(fabric.AllGather, 6, 8, fabric.Done)}},
		{rank: 2, missing: "no report: its connection is gone"},
		{rank: 3},
	})
	assert.Equal(t, "2", m["missing"])
	assert.Equal(t, "rank 1 has not called seq 7; rank 3 has not called seq 7", m["behind"])
	assert.NotContains(t, m, "disagree")
	assert.Equal(t, "timeout: x", m["err"])
	assert.Equal(t, map[string]any{
		"0": "all-gather seq 7, 8 bytes, running for 30s, waits for 1, 2",
		"1": "all-gather seq 6, 8 bytes, done",
		"2": "no report: its connection is gone",
		"3": "no call yet",
	}, m["ranks"])
}

func TestTheFlightTableSaysWhoDisagrees(t *testing.T) {
	m := logged(t, fabric.ErrDesync, []flight{
		{rank: 0, records: []fabric.Record{record(fabric.AllGather, 7, 8, fabric.Failed)}},
		{rank: 1, records: []fabric.Record{record(fabric.AllReduce, 7, 8, fabric.Failed)}},
		{rank: 2, records: []fabric.Record{record(fabric.AllGather, 7, 8, fabric.Done), record(fabric.AllGather, 8, 8, fabric.Running)}},
	})
	assert.Equal(t, "seq 7: ranks 0, 2: all-gather of 8 bytes; ranks 1: all-reduce of 8 bytes", m["disagree"])
	assert.NotContains(t, m, "missing")
	assert.NotContains(t, m, "behind")
}

func TestPairCallsDoNotCountAsTheGroups(t *testing.T) {
	m := logged(t, fabric.ErrTimeout, []flight{
		{rank: 0, records: []fabric.Record{record(fabric.Send, 1, 8, fabric.Running)}},
		{rank: 1, records: []fabric.Record{record(fabric.Barrier, 1, 0, fabric.Done), record(fabric.Send, 4, 8, fabric.Failed)}},
	})
	assert.NotContains(t, m, "behind")
	assert.NotContains(t, m, "disagree")
}
