package bootstrap

import "time"

// monitor judges silence. It holds no clock: every method is given the time.
type monitor struct {
	every, busy, idle time.Duration // every <= 0: no beats and no verdicts
	next              time.Time     // when the next tick is due
	heard             []time.Time   // last sign of life, by rank
}

func newMonitor(world int, every, busy, idle time.Duration, now time.Time) *monitor {
	m := &monitor{every: every, busy: busy, idle: idle, next: now, heard: make([]time.Time, world)}
	for i := range m.heard {
		m.heard[i] = now
	}
	return m
}

func (m *monitor) on() bool { return m.every > 0 }

func (m *monitor) due(now time.Time) bool { return m.on() && !now.Before(m.next) }

// tick starts the next period and says how late this one came. A monitor that did not run cannot tell the others'
// silence from its own, so the time that it missed counts for nobody.
func (m *monitor) tick(now time.Time) (late time.Duration) {
	late = max(0, now.Sub(m.next))
	m.next = now.Add(m.every)
	for i, t := range m.heard {
		if t = t.Add(late); t.After(now) {
			t = now
		}
		m.heard[i] = t
	}
	return late
}

func (m *monitor) life(rank int, now time.Time) { m.heard[rank] = now }

func (m *monitor) silence(rank int, now time.Time) time.Duration { return now.Sub(m.heard[rank]) }

// limit is how long a rank may be silent.
func (m *monitor) limit(waitedFor bool) time.Duration {
	if waitedFor {
		return m.busy
	}
	return m.idle
}

func (m *monitor) silent(rank int, waitedFor bool, now time.Time) bool {
	return m.on() && m.silence(rank, now) > m.limit(waitedFor)
}

// alive says whether rank has shown life in the last three periods. Without beats nobody can tell: it has.
func (m *monitor) alive(rank int, now time.Time) bool {
	return !m.on() || m.silence(rank, now) <= 3*m.every
}
