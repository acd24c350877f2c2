package bootstrap

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestTheFirstReportWins(t *testing.T) {
	s := group(t, configs(t, 4))
	got := make([]error, 4)
	got[2] = s[2].Report(&fabric.Cause{Kind: fabric.ErrDesync, Peer: 3, From: -1, Text: "seen"})
	each(4, func(r int) {
		if r != 2 {
			got[r] = s[r].Report(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: r, From: -1, Text: "later"})
		}
	})
	theCause(t, fabric.Cause{Kind: fabric.ErrDesync, Peer: 3, From: 2, Text: "seen"}, s...)
	for r := range s {
		assert.Same(t, s[r].Cause(), got[r], "rank %d: what Report gives is the cause", r)
	}
}

func TestReportsAtOnceEndInOneCause(t *testing.T) {
	for range 10 {
		s := group(t, configs(t, 4))
		got := make([]error, 4)
		each(4, func(r int) {
			got[r] = s[r].Report(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: (r + 1) % 4, From: -1, Text: "30s"})
		})
		sameCause(t, got, fabric.ErrTimeout)
		sameCause(t, causes(t, s...), fabric.ErrTimeout)
	}
}

// hasAsked says whether the rank's report is on its way.
func (s *Session) hasAsked() bool {
	asked := make(chan bool, 1)
	return s.post(func() { asked <- s.loop.asked != nil && !s.loop.links[0].unsent() }) && <-asked
}

func TestADeathOutranksItsConsequences(t *testing.T) {
	for name, report := range map[string]*fabric.Cause{
		"a broken socket to the dead": {Kind: fabric.ErrPeerFailed, Peer: 1, From: -1, Text: "connection reset by peer"},
		"a broken socket to a third":  {Kind: fabric.ErrPeerFailed, Peer: 3, From: -1, Text: "connection reset by peer"},
		"an abort for it":             {Kind: fabric.ErrAborted, Peer: -1, From: -1, Text: "engine gave up"},
		"a timeout":                   {Kind: fabric.ErrTimeout, Peer: 1, From: -1, Text: "30s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := group(t, configs(t, 4))
			thaw := freeze(t, s[0])
			var wg sync.WaitGroup
			wg.Go(func() { _ = s[2].Report(report) })
			require.Eventually(t, s[2].hasAsked, patience, time.Millisecond)
			kill(s[1]) // after the report, and yet it outranks it
			thaw()
			wg.Wait()
			theCause(t, peerFailed(1, 0, died), s[0], s[2], s[3])
		})
	}
}

func TestADesyncIsNoConsequenceOfADeath(t *testing.T) {
	s := group(t, configs(t, 3))
	thaw := freeze(t, s[0])
	var wg sync.WaitGroup
	wg.Go(func() { _ = s[2].Report(&fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: -1, Text: "seq 4"}) })
	require.Eventually(t, s[2].hasAsked, patience, time.Millisecond)
	kill(s[1])
	thaw()
	wg.Wait()
	theCause(t, fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: 2, Text: "seq 4"}, s[0], s[2])
}

func TestTheReportOfARankThatThenDiesStands(t *testing.T) {
	s := group(t, configs(t, 3))
	thaw := freeze(t, s[0])
	var wg sync.WaitGroup
	wg.Go(func() { _ = s[2].Report(errors.New("out of memory")) })
	require.Eventually(t, s[2].hasAsked, patience, time.Millisecond)
	kill(s[2])
	thaw()
	wg.Wait()
	theCause(t, fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: 2, Text: "out of memory"}, s[0], s[1])
}

func TestADeathIsTheCauseOfAllOthers(t *testing.T) {
	s := group(t, configs(t, 4))
	kill(s[3])
	theCause(t, peerFailed(3, 0, died), s[:3]...)
}

func TestTheDeathOfRank0IsOneCause(t *testing.T) {
	s := group(t, configs(t, 4))
	kill(s[0])
	theCause(t, peerFailed(0, -1, "rank 0 failed"), s[1:]...)
}

func TestReportsWithoutRank0EndInItsFailure(t *testing.T) {
	for name, verdicts := range map[string]func([]Config) []Config{
		"silent": quick,
		"without heartbeat": func(all []Config) []Config {
			for r := range all {
				all[r].Heartbeat, all[r].VerdictBusy = -1, 300*ms
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := group(t, verdicts(configs(t, 3)))
			thaw := freeze(t, s[0])
			each(2, func(i int) {
				began := time.Now()
				_ = s[i+1].Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 0, From: -1, Text: "reset"})
				assert.GreaterOrEqual(t, time.Since(began), verdictWait)
			})
			theCause(t, peerFailed(0, -1, "rank 0 failed"), s[1:]...)
			thaw()
			theCause(t, peerFailed(0, -1, "rank 0 failed"), s[0])
		})
	}
}

func TestALivingRank0IsWaitedForLonger(t *testing.T) {
	all := configs(t, 2)
	for r := range all {
		all[r].Heartbeat, all[r].VerdictBusy = 2*time.Second, patience
	}
	s := group(t, all)
	// Rank 0 has shown life within three heartbeats, but is too busy for a verdict.
	thaw := freeze(t, s[0])
	var wg sync.WaitGroup
	wg.Go(func() { _ = s[1].Report(errors.New("enough")) })
	pause(testContext(t), 3*verdictWait)
	assert.NoError(t, s[1].Cause(), "not accused after 200 ms")
	thaw()
	wg.Wait()
	theCause(t, fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: 1, Text: "enough"}, s...)
}

func TestACleanLeaveFailsNobody(t *testing.T) {
	for leaver := range 3 {
		s := group(t, quick(configs(t, 3)))
		require.NoError(t, s[leaver].Close(testContext(t)))
		pause(testContext(t), 400*ms)
		for r := range s {
			assert.NoError(t, s[r].Cause(), "rank %d after rank %d left", r, leaver)
		}
	}
}

func TestAReportOfARankThatHasLeftSaysSo(t *testing.T) {
	s := group(t, configs(t, 3))
	require.NoError(t, s[2].Close(testContext(t)))
	require.Eventually(t, func() bool { return s[1].Status()[2].Left }, patience, time.Millisecond)
	got := s[1].Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 2, From: -1, Text: "EOF", Err: io.EOF})
	assert.ErrorContains(t, got, "rank 2 left the group")
	theCause(t, peerFailed(2, 1, "rank 2 left the group"), s[:2]...)
}

func TestAReportAfterRank0HasLeftSaysSo(t *testing.T) {
	s := group(t, configs(t, 3))
	require.NoError(t, s[0].Close(testContext(t)))
	for r := 1; r < 3; r++ {
		require.Eventually(t, func() bool { return s[r].Status()[0].Left }, patience, time.Millisecond)
	}
	each(2, func(i int) {
		_ = s[i+1].Report(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: 2 - i, From: -1, Text: "30s"})
	})
	theCause(t, peerFailed(0, -1, "rank 0 left the group"), s[1:]...)
}

func TestTheReporterKeepsItsSystemsError(t *testing.T) {
	s := group(t, configs(t, 2))
	got := s[1].Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 0, From: -1, Err: io.ErrUnexpectedEOF})
	assert.ErrorIs(t, got, io.ErrUnexpectedEOF)
	assert.ErrorIs(t, got, fabric.ErrPeerFailed)
	theCause(t, peerFailed(0, 1, "unexpected EOF"), s...)
}

func TestEveryCallAfterAFailureGivesTheCause(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	_ = s[1].Report(errors.New("enough"))
	causes(t, s...)
	for r := range s {
		_, gatherErr := s[r].AllGather(ctx, nil)
		_, _, recvErr := s[r].Control().Recv(ctx, nil)
		errs := map[string]error{
			"all-gather":      gatherErr,
			"vote":            s[r].Vote(ctx, "x", nil),
			"compare":         s[r].Compare(ctx, nil),
			"control recv":    recvErr,
			"control send":    s[r].Control().Send(ctx, (r+1)%3, nil),
			"control barrier": s[r].Control().Barrier(ctx),
		}
		if r < 2 {
			_, errs["accept"] = s[r].Accept(ctx, 2, fabric.Lane{Channel: "host"})
		} else {
			_, errs["dial"] = s[r].Dial(ctx, 0, fabric.Lane{Channel: "host"})
		}
		for op, err := range errs {
			var e *fabric.OpError
			if assert.ErrorAs(t, err, &e, op) {
				assert.Equal(t, []any{op, r, -1, 1, s[r].Cause()}, []any{e.Op, e.Rank, e.Peer, e.From, e.Err})
			}
			assert.ErrorIs(t, err, fabric.ErrAborted, op)
		}
	}
}

func TestOnCauseRunsOnceEachAndAtOnceWhenLate(t *testing.T) {
	s := group(t, configs(t, 2))
	early := make(chan error, 10)
	s[0].OnCause(func(err error) { early <- err })
	_ = s[1].Report(errors.New("enough"))
	causes(t, s...)
	assert.Same(t, s[0].Cause(), <-early)
	ran := false
	s[0].OnCause(func(err error) { ran = err == s[0].Cause() })
	assert.True(t, ran)
	closeAll(s)
	assert.Empty(t, early)
}

func TestRank0GathersTheLastCallsOfAll(t *testing.T) {
	s := group(t, configs(t, 4))
	begun := time.Now().Round(0)
	for r := range s {
		s[r].Watch(waitsFor(r), func() []fabric.Record {
			var all []fabric.Record
			for seq := range uint64(20) {
				all = append(all, fabric.Record{Seq: seq + uint64(100*r), Op: fabric.AllReduce, Bytes: 64, Peer: -1, State: fabric.Done,
					Begun: begun, Queued: 1, Took: 2})
			}
			return all
		})
	}
	got := make(chan []RankReport, 2)
	s[0].OnReports(func(r []RankReport) { got <- r })
	thaw := freeze(t, s[3])
	_ = s[1].Report(errors.New("enough"))
	reports := <-got
	thaw()
	require.Len(t, reports, 4)
	for r, report := range reports {
		assert.Equal(t, r, report.Rank)
		assert.NotEmpty(t, report.Host)
		if r == 3 {
			assert.Equal(t, "no answer", report.Missing)
			continue
		}
		assert.Empty(t, report.Missing)
		assert.Equal(t, uint64(1)<<r, report.Progress.Waiting)
		require.Len(t, report.Records, maxRecords)
		last := report.Records[maxRecords-1]
		assert.Equal(t, uint64(19+100*r), last.Seq)
		assert.True(t, begun.Equal(last.Begun))
	}
	closeAll(s)
	assert.Empty(t, got, "once")
}
