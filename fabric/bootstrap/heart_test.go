package bootstrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	silentBusy = "no sign of life for 300ms while a call waited for it"
	silentIdle = "no sign of life for 1.5s"
)

func TestAFrozenRankThatACallWaitsForFailsSoon(t *testing.T) {
	s := group(t, quick(configs(t, 4)))
	s[1].Watch(waitsFor(2), nil) // not rank 0's own call: rank 1 says whom it waits for
	thaw := freeze(t, s[2])
	began := time.Now()
	theCause(t, peerFailed(2, 0, silentBusy), s[0], s[1], s[3])
	assert.GreaterOrEqual(t, time.Since(began), 250*ms)
	thaw()
	theCause(t, peerFailed(2, 0, silentBusy), s[2])
}

func TestAFrozenIdleRankFailsLater(t *testing.T) {
	s := group(t, quick(configs(t, 3)))
	began := time.Now()
	freeze(t, s[2])
	theCause(t, peerFailed(2, 0, silentIdle), s[:2]...)
	assert.GreaterOrEqual(t, time.Since(began), 1400*ms)
}

func TestARankFrozenWhileIdleForLessThanTheVerdictIsForgiven(t *testing.T) {
	for r := range 3 {
		s := group(t, quick(configs(t, 3)))
		thaw := freeze(t, s[r])
		pause(testContext(t), 700*ms)
		thaw()
		pause(testContext(t), 200*ms)
		for i := range s {
			assert.NoError(t, s[i].Cause(), "rank %d, %d was frozen", i, r)
		}
	}
}

func TestAFrozenRank0IsJudgedByEachRankThatWaits(t *testing.T) {
	s := group(t, quick(configs(t, 3)))
	for r := 1; r < 3; r++ {
		s[r].Watch(waitsFor(0), nil)
	}
	thaw := freeze(t, s[0])
	theCause(t, peerFailed(0, -1, "rank 0 failed"), s[1:]...)
	// It wakes to broken sockets, and accuses nobody.
	reported := make(chan error)
	go func() {
		reported <- s[0].Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 2, From: -1, Text: "reset"})
	}()
	for !s[0].queued() {
		pause(testContext(t), ms)
	}
	closeAll(s[1:])
	thaw()
	got := <-reported
	assert.Same(t, s[0].Cause(), got)
	theCause(t, peerFailed(0, -1, "rank 0 failed"), s[0])
}

func TestAFrozenRankWakesToTheVerdictThatNamesIt(t *testing.T) {
	s := group(t, quick(configs(t, 3)))
	s[0].Watch(waitsFor(1), nil)
	thaw := freeze(t, s[1])
	theCause(t, peerFailed(1, 0, silentBusy), s[0], s[2])
	closeAll([]*Session{s[0], s[2]})
	reported := make(chan error)
	go func() {
		reported <- s[1].Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 0, From: -1, Text: "reset"})
	}()
	for !s[1].queued() {
		pause(testContext(t), ms)
	}
	thaw()
	got := <-reported
	assert.Same(t, s[1].Cause(), got)
	theCause(t, peerFailed(1, 0, silentBusy), s[1])
}

func TestALateRank0AccusesNobody(t *testing.T) {
	s := group(t, quick(configs(t, 3)))
	for r := range s {
		s[r].Watch(waitsFor(1, 2), nil)
	}
	// All stop together, as on a suspended host; rank 0 wakes first, and waits in vain for a while.
	thaw1, thaw2 := freeze(t, s[1]), freeze(t, s[2])
	thaw0 := freeze(t, s[0])
	pause(testContext(t), 600*ms)
	thaw0()
	pause(testContext(t), 100*ms)
	thaw1()
	thaw2()
	pause(testContext(t), 400*ms)
	for r := range s {
		assert.NoError(t, s[r].Cause(), "rank %d", r)
	}
}

func TestARankThatHasSaidGoodbyeIsNotJudged(t *testing.T) {
	s := group(t, quick(configs(t, 2)))
	s[0].Watch(waitsFor(1), nil)
	require.True(t, s[1].post(func() {
		s[1].loop.links[0].send(frameGoodbye, nil)
		s[1].loop.flush()
	}))
	freeze(t, s[1]) // and its connection stays open
	pause(testContext(t), 700*ms)
	assert.True(t, s[0].Status()[1].Left)
	assert.NoError(t, s[0].Cause())
}

func TestWithoutHeartbeatAFrozenRankIsLeftAlone(t *testing.T) {
	all := quick(configs(t, 2))
	for r := range all {
		all[r].Heartbeat = -1
	}
	s := group(t, all)
	s[0].Watch(waitsFor(1), nil)
	freeze(t, s[1])
	pause(testContext(t), 600*ms)
	assert.NoError(t, s[0].Cause())
}

func TestStatusKnowsWhatBeatsSaid(t *testing.T) {
	s := group(t, quick(configs(t, 3)))
	s[2].Watch(waitsFor(1), nil)
	require.Eventually(t, func() bool { return s[0].Status()[2].Progress.Waiting == 2 }, patience, ms)
	st := s[0].Status()
	require.Len(t, st, 3)
	assert.Equal(t, uint64(5), st[2].Progress.Seq)
	assert.Equal(t, 2, st[2].Rank)
	assert.NotEmpty(t, st[2].Host)
	assert.GreaterOrEqual(t, st[2].Age, time.Duration(0))
	mine := s[2].Status()
	assert.Equal(t, uint64(2), mine[2].Progress.Waiting, "itself")
	require.Eventually(t, func() bool { return s[2].Status()[0].Age >= 0 }, patience, ms, "and rank 0")
	assert.Negative(t, s[2].Status()[1].Age, "but no other")
	kill(s[1])
	causes(t, s[0], s[2])
	assert.True(t, s[0].Status()[1].Failed)
	assert.True(t, s[2].Status()[1].Failed)
}
