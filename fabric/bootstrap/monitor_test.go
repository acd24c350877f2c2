package bootstrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const ms = time.Millisecond

func TestSilenceIsJudgedByWhetherACallWaits(t *testing.T) {
	t0 := time.Unix(1000, 0)
	m := newMonitor(2, 100*ms, time.Second, 5*time.Second, t0)
	m.tick(t0)
	for at := 100 * ms; at <= 6*time.Second; at += 100 * ms {
		now := t0.Add(at)
		m.tick(now)
		assert.Equal(t, at > time.Second, m.silent(1, true, now), "busy at %v", at)
		assert.Equal(t, at > 5*time.Second, m.silent(1, false, now), "idle at %v", at)
		assert.Equal(t, at <= 300*ms, m.alive(1, now), "alive at %v", at)
	}
	m.life(1, t0.Add(6*time.Second))
	assert.False(t, m.silent(1, true, t0.Add(7*time.Second)))
}

func TestALateMonitorAccusesNobody(t *testing.T) {
	t0 := time.Unix(1000, 0)
	m := newMonitor(2, 100*ms, time.Second, 5*time.Second, t0)
	m.tick(t0)
	m.life(1, t0.Add(50*ms))
	// Stopped for an hour: the peer may have spoken in all of it, and its bytes may have been lost meanwhile.
	woke := t0.Add(time.Hour)
	late := m.tick(woke)
	assert.Equal(t, time.Hour-100*ms, late)
	assert.False(t, m.silent(1, true, woke))
	// From then on silence counts as always: 50 ms of it had passed before the stop, 100 ms were not missed.
	for at := 100 * ms; at <= 900*ms; at += 100 * ms {
		m.tick(woke.Add(at))
		assert.False(t, m.silent(1, true, woke.Add(at)), "at %v", at)
	}
	m.tick(woke.Add(time.Second))
	assert.True(t, m.silent(1, true, woke.Add(time.Second)))
}

func TestAThrottledMonitorExtendsByWhatItMissed(t *testing.T) {
	t0 := time.Unix(1000, 0)
	m := newMonitor(2, 100*ms, time.Second, 5*time.Second, t0)
	m.tick(t0)
	now := t0
	for range 10 { // every tick 200 ms late
		now = now.Add(300 * ms)
		m.tick(now)
	}
	assert.False(t, m.silent(1, true, now), "three seconds by the clock, one by the monitor")
	now = now.Add(300 * ms)
	m.tick(now)
	assert.True(t, m.silent(1, true, now))
}

func TestLatenessNeverCountsAsLife(t *testing.T) {
	t0 := time.Unix(1000, 0)
	m := newMonitor(2, 100*ms, time.Second, 5*time.Second, t0)
	m.tick(t0)
	m.life(1, t0.Add(5*time.Second))
	m.tick(t0.Add(5 * time.Second))
	assert.Equal(t, t0.Add(5*time.Second), m.heard[1], "no life in the future")
}

func TestWithoutHeartbeatNobodyIsJudged(t *testing.T) {
	t0 := time.Unix(1000, 0)
	m := newMonitor(2, -1, time.Second, 5*time.Second, t0)
	later := t0.Add(time.Hour)
	assert.False(t, m.due(later))
	assert.False(t, m.silent(1, true, later))
	assert.True(t, m.alive(1, later))
}
