package hipfabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestTheStatusSaysWhoWaitsInAPart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	groups := opened(t, 4, func(c *Config) {
		c.Timeout = NoTimeout
		if c.Rank == 0 {
			c.StatusSocket = socket
		}
	})
	part := splits(t, groups, "part", SplitOptions{}, func(r int) (int, int) { return r / 2, -r }) // 3, 2 are 0, 1
	gone := splits(t, groups, "gone", SplitOptions{}, rows)
	require.NoError(t, errors.Join(each(4, func(r int) error { return gone[r].Host().Barrier() })...))
	closeAll(gone)
	waiting := make(chan error, 2)
	go func() { waiting <- part[3].Host().Recv(make([]byte, 8), 1) }()
	var s Status
	require.Eventually(t, func() bool {
		s, _ = ReadStatus(t.Context(), socket)
		return len(s.Ranks) == 4 && len(s.Ranks[3].WaitingFor) == 1
	}, 20*time.Second, 10*time.Millisecond, "its heartbeats say so")
	r := s.Ranks[3]
	assert.Equal(t, []any{true, "recv", "default/part.1", uint64(1), 2, []int{2}}, []any{r.Running, r.Op, r.Group, r.Seq, r.Peer, r.WaitingFor})
	assert.Equal(t, uint64(3), r.Calls, "two Splits and a barrier in a group that is closed")
	groups[0].Abort(errors.New("enough"))
	require.ErrorIs(t, <-waiting, fabric.ErrAborted)
}

func TestASilentRankIsJudgedByWhoWaitsInAPart(t *testing.T) {
	groups := opened(t, 3, func(c *Config) {
		c.Heartbeat, c.VerdictBusy, c.VerdictIdle = 20*time.Millisecond, 300*time.Millisecond, time.Hour
		c.Timeout = NoTimeout
	})
	part := splits(t, groups, "part", SplitOptions{Isolated: true}, func(r int) (int, int) { return min(r, 1), -r }) // 2, 1 are 0, 1
	stopped := make(chan struct{})
	var once sync.Once
	goOn := func() { once.Do(func() { close(stopped) }) }
	defer goOn()
	groups[1].session.Watch(func() fabric.Progress { <-stopped; return fabric.Progress{Peer: -1} }, nil) // as SIGSTOP does
	err := part[2].Host().Barrier()
	require.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.ErrorContains(t, err, "no sign of life for 300ms while a call waited for it")
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, []int{0, 1, -1}, []int{op.Rank, op.Peer, op.From}, "rank 0, which judges, is none of the part's")
	assert.Equal(t, 1, ended(t, groups[2]).Peer)
}

// logs is a log that a test reads while ranks write it.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// records are those with a message, of every rank.
func (l *logs) records(t *testing.T, msg string) (found []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.b.Bytes()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal(line, &m))
		if m["msg"] == msg {
			found = append(found, m)
		}
	}
	return found
}

func TestTheFlightRecordsAreThoseOfThePartThatFailed(t *testing.T) {
	var log logs
	groups := opened(t, 4, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	part, other := splits(t, groups, "part", SplitOptions{}, rows), splits(t, groups, "other", SplitOptions{}, columns)
	require.NoError(t, errors.Join(each(4, func(r int) error { return part[r].Host().Barrier() })...))
	waiting := make(chan error, 2)
	for _, g := range other[2:] { // longer than what fails, for ranks 0 and 1, which do not come
		go func() { waiting <- g.Host().Barrier() }()
		require.Eventually(t, func() bool { return g.host.Progress().Waiting != 0 }, 10*time.Second, time.Millisecond)
	}
	errs := each(2, func(i int) error { return part[2+i].Host().AllGather(make([]byte, 2*(1+i)), make([]byte, 1+i)) })
	for _, err := range errs {
		require.ErrorIs(t, err, fabric.ErrDesync)
		require.ErrorIs(t, <-waiting, fabric.ErrDesync)
	}
	closeAll(groups)
	found := log.records(t, "flight records")
	require.Len(t, found, 1)
	ranks := found[0]["ranks"].(map[string]any)
	assert.Contains(t, found[0]["err"], `desync in group "default/part.1"`)
	assert.Equal(t, "seq 2: ranks 2: all-gather of 1 bytes; ranks 3: all-gather of 2 bytes", found[0]["disagree"])
	assert.NotContains(t, found[0], "behind")
	for r, want := range []string{"in default/part.0: barrier seq 1", "in default/part.0: barrier seq 1", "in default/part.1: all-gather seq 2", "in default/part.1: all-gather seq 2"} {
		assert.Contains(t, ranks[string(rune('0'+r))], want)
	}
	for _, m := range log.records(t, "group failed") {
		assert.Equal(t, "default", m["group"], "decided once, logged once a rank")
	}
	assert.Len(t, log.records(t, "group failed"), 4)
	opens := log.records(t, "group open")
	require.Len(t, opens, 12)
	for _, m := range opens {
		if m["group"] == "default/part.1" {
			assert.Equal(t, "2, 3", m["ranks"])
		}
	}
}

func TestAnIsolatedFailureIsLoggedByItsMembers(t *testing.T) {
	var log logs
	groups := opened(t, 4, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	part := splits(t, groups, "part", SplitOptions{Isolated: true}, rows)
	part[2].Abort(errors.New("enough"))
	ended(t, part[3])
	closeAll(groups)
	found := log.records(t, "group failed")
	require.Len(t, found, 2)
	for _, m := range found {
		assert.Equal(t, []any{"default/part.1", `aborted in group "default/part.1": enough`}, []any{m["group"], m["err"]})
	}
	assert.Empty(t, log.records(t, "flight records"))
}
