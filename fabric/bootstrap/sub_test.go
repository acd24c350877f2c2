package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// subs makes each member's part of a sub-group, by rank of it.
func subs(t *testing.T, s []*Session, c SubConfig) []*Sub {
	t.Helper()
	all := make([]*Sub, len(c.Members))
	for i, r := range c.Members {
		u, err := s[r].Sub(c)
		require.NoError(t, err)
		t.Cleanup(u.Close)
		all[i] = u
	}
	return all
}

// theSubCause waits for the cause of each, of the sub-group's ranks.
func theSubCause(t *testing.T, want fabric.Cause, all ...*Sub) {
	t.Helper()
	for i, u := range all {
		select {
		case <-u.Done():
		case <-time.After(patience):
			require.Fail(t, "no cause", "member %d", i)
		}
		var c *fabric.Cause
		require.ErrorAs(t, u.Cause(), &c)
		got := *c
		got.Err = nil
		assert.Equal(t, want, got, "member %d", i)
	}
}

// held is how many exchanges of sub-groups rank 0 keeps.
func held(s *Session) int {
	n := make(chan int, 1)
	s.post(func() { n <- len(s.loop.subGathers) })
	return <-n
}

func TestMembersGatherAsOftenAsTheyLike(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 5))
	a, b := subs(t, s, SubConfig{Key: "a", Members: []int{4, 0, 2}}), subs(t, s, SubConfig{Key: "b", Members: []int{3, 4}})
	each(5, func(task int) {
		all, i := a, task
		if task >= 3 {
			all, i = b, task-3
		}
		for round := range 30 {
			got, err := all[i].AllGather(ctx, bytes.Repeat([]byte{byte(i)}, round*100))
			if !assert.NoError(t, err) {
				return
			}
			for from, blob := range got {
				assert.Equal(t, bytes.Repeat([]byte{byte(from)}, round*100), blob)
			}
		}
	})
	assert.Zero(t, held(s[0]))
	_, err := a[0].AllGather(ctx, make([]byte, MaxBlob+1))
	assert.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestAnIsolatedSubsFirstReportWins(t *testing.T) {
	s := group(t, configs(t, 4))
	all := subs(t, s, SubConfig{Name: "part", Key: "a", Members: []int{3, 1, 2}, Isolated: true})
	below := subs(t, s, SubConfig{Name: "below", Key: "b", Members: []int{2, 3}})
	for i, u := range below {
		u.Move(all[[]int{2, 0}[i]], false)
	}
	_ = all[1].Report(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: 0, From: -1, Text: "seen"})
	_ = all[2].Report(&fabric.Cause{Kind: fabric.ErrDesync, Peer: 0, From: -1, Text: "later"})
	theSubCause(t, fabric.Cause{Kind: fabric.ErrTimeout, Peer: 0, From: 1, Text: "seen", Group: "part"}, all...)
	theSubCause(t, fabric.Cause{Kind: fabric.ErrTimeout, Peer: 1, From: -1, Text: "seen", Group: "part"}, below...)
	for r := range s {
		assert.NoError(t, s[r].Cause())
	}
}

func TestADeathEndsASubWithTheSessionsCause(t *testing.T) {
	s := group(t, configs(t, 4))
	all := subs(t, s, SubConfig{Name: "part", Key: "a", Members: []int{3, 2, 1}, Isolated: true})
	thaw := freeze(t, s[0])
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = all[1].Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 2, From: -1, Text: "reset"})
	})
	reported := func() bool { // on its way, before the death
		sent := make(chan bool, 1)
		return s[2].post(func() { sent <- !s[2].loop.links[0].unsent() }) && <-sent
	}
	require.Eventually(t, reported, patience, time.Millisecond)
	kill(s[1])
	thaw()
	wg.Wait()
	theCause(t, peerFailed(1, 0, died), s[0], s[2], s[3])
	theSubCause(t, peerFailed(2, -1, died), all[:2]...) // rank 0, which judges, is none of its ranks
}

func TestADeathThatRank0HasNotReadYetOutranksAReport(t *testing.T) {
	s := group(t, configs(t, 3))
	all := subs(t, s, SubConfig{Name: "part", Key: "a", Members: []int{0, 1, 2}, Isolated: true})
	killed, decided := make(chan struct{}), make(chan int, 1)
	s[0].post(func() {
		<-killed
		l := s[0].loop
		l.reportSub(subCause{"a", 7, &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 1, From: 2, Text: "reset"}})
		l.decideSubs()
		decided <- len(l.verdicts)
	})
	kill(s[1])
	close(killed)
	assert.Zero(t, <-decided)
	theSubCause(t, peerFailed(1, 0, died), all[0], all[2])
}

func TestASubOfARankThatHasLeftSaysSo(t *testing.T) {
	s := group(t, configs(t, 3))
	all := subs(t, s, SubConfig{Name: "part", Key: "a", Members: []int{2, 1}, Isolated: true})
	require.NoError(t, s[2].Close(testContext(t)))
	_ = all[1].Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 0, From: -1, Text: "EOF"})
	theSubCause(t, fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 0, From: 1, Text: "rank 2 left the group", Group: "part"}, all[1])
	_, err := all[1].AllGather(testContext(t), nil)
	assert.ErrorContains(t, err, "rank 2 left the group")
}

func TestAFrozenRank0GivesNoVerdictForABoundedTime(t *testing.T) {
	all := configs(t, 3)
	for r := range all {
		all[r].Heartbeat, all[r].VerdictBusy = -1, 300*ms
	}
	s := group(t, all)
	part := subs(t, s, SubConfig{Name: "part", Key: "a", Members: []int{1, 2}, Isolated: true})
	thaw := freeze(t, s[0])
	got := part[0].Report(errors.New("enough"))
	assert.ErrorContains(t, got, "rank 0 failed")
	thaw()
}

func TestAnAgreementHasOneOutcome(t *testing.T) {
	s := group(t, configs(t, 3))
	outcomes := map[bool]int{}
	for round := range 40 {
		all := subs(t, s, SubConfig{Name: "vote", Key: fmt.Sprint("v", round), Members: []int{0, 1, 2}, Isolated: true})
		below := subs(t, s, SubConfig{Name: "below", Key: fmt.Sprint("b", round), Members: []int{0, 1, 2}})
		ctx, cancel := context.WithCancel(testContext(t))
		errs := make([]error, 3)
		each(3, func(r int) {
			below[r].Move(all[r], false)
			mine := testContext(t)
			if r == 1 {
				mine = ctx
			}
			if r == 2 {
				if round%2 == 0 {
					cancel()
				} else {
					defer cancel()
				}
				pause(mine, time.Duration(round)*50*time.Microsecond)
			}
			if errs[r] = all[r].Agree(mine); errs[r] == nil {
				below[r].Move(nil, false)
			}
		})
		cancel()
		outcomes[errs[0] == nil]++
		for r := range 3 {
			assert.Equal(t, errs[0] == nil, errs[r] == nil, "round %d: %v", round, errs)
			if errs[0] == nil {
				assert.NoError(t, below[r].Cause())
			} else {
				assert.ErrorIs(t, errs[r], fabric.ErrAborted)
				<-below[r].Done()
				assert.ErrorIs(t, below[r].Cause(), fabric.ErrAborted)
			}
			all[r].Close()
			below[r].Close()
		}
	}
	t.Logf("agreed: %d, ended: %d", outcomes[true], outcomes[false])
	for r := range s {
		assert.NoError(t, s[r].Cause())
		assert.Empty(t, s[r].subs)
		require.True(t, s[r].post(func() {}))
	}
	require.Eventually(t, func() bool { return held(s[0]) == 0 }, patience, time.Millisecond, "rank 0 keeps nothing of what is over")
}

func TestASubsConfigIsChecked(t *testing.T) {
	s := group(t, configs(t, 3))
	_, err := s[1].Sub(SubConfig{Key: "taken", Members: []int{1}})
	require.NoError(t, err)
	for want, c := range map[string]SubConfig{
		"members are [1 1]":            {Key: "k", Members: []int{1, 1}},
		"members are [1 3]":            {Key: "k", Members: []int{1, 3}},
		"members are [-1 1]":           {Key: "k", Members: []int{-1, 1}},
		"rank 1 itself is missing":     {Key: "k", Members: []int{0, 2}},
		"the key is \"\"":              {Members: []int{1}},
		"1 to 16 bytes are needed":     {Key: "12345678901234567", Members: []int{1}},
		"at most 64 are allowed":       {Key: "k", Members: []int{1}, Name: string(make([]byte, 65))},
		"names another sub-group that": {Key: "taken", Members: []int{1}},
	} {
		_, err := s[1].Sub(c)
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, want)
	}
}

// What a rank can make rank 0 hold is bounded.
func TestARankThatFloodsRank0WithBlobsIsCutOff(t *testing.T) {
	s := group(t, configs(t, 3))
	s[1].post(func() {
		for step := range uint32(maxSubGathers + 1) {
			s[1].loop.contributeSub(subBlob{key: "k", set: 6, step: step, rank: 1})
		}
	})
	for _, err := range causes(t, s[0], s[2]) {
		assert.ErrorIs(t, err, fabric.ErrPeerFailed)
		assert.ErrorContains(t, err, "bad control frame")
	}
}

func TestForgedSubFramesEndTheirSender(t *testing.T) {
	for name, forge := range map[string]func(l *loop){
		"another's blob":    func(l *loop) { l.contributeSub(subBlob{key: "k", set: 6, step: 1, rank: 2}) },
		"no member":         func(l *loop) { l.contributeSub(subBlob{key: "k", set: 4, step: 1, rank: 1}) },
		"ranks beyond":      func(l *loop) { l.contributeSub(subBlob{key: "k", set: 10, step: 1, rank: 1}) },
		"no key":            func(l *loop) { l.contributeSub(subBlob{set: 6, step: 1, rank: 1}) },
		"another's verdict": func(l *loop) { l.reportSub(subCause{"k", 5, &fabric.Cause{Kind: fabric.ErrAborted, Peer: -1}}) },
		"a cause of nobody": func(l *loop) { l.reportSub(subCause{"k", 6, &fabric.Cause{Kind: fabric.ErrAborted, Peer: 7}}) },
		"twice in one": func(l *loop) {
			l.contributeSub(subBlob{key: "k", set: 6, step: 1, rank: 1})
			l.contributeSub(subBlob{key: "k", set: 6, step: 1, rank: 1})
		},
		"with other members": func(l *loop) {
			l.contributeSub(subBlob{key: "k", set: 6, step: 1, rank: 1})
			l.contributeSub(subBlob{key: "k", set: 7, step: 1, rank: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := group(t, configs(t, 3))
			s[1].post(func() { forge(s[1].loop) })
			for _, err := range causes(t, s[0], s[2]) {
				assert.ErrorIs(t, err, fabric.ErrPeerFailed)
				assert.ErrorContains(t, err, "bad control frame")
			}
		})
	}
}
