package verbstest

import "time"

// run is all HCAs' work: it blocks while there is none.
func (f *Fabric) run() {
	defer close(f.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-f.quit:
			return
		default:
		}
		f.mu.Lock()
		did, next := false, time.Time{}
		if !f.held {
			did, next = f.step(time.Now())
		}
		f.mu.Unlock()
		if did {
			continue
		}
		var due <-chan time.Time
		if !next.IsZero() {
			timer.Reset(time.Until(next))
			due = timer.C
		}
		select {
		case <-f.wake:
		case <-due:
		case <-f.quit:
			return
		}
	}
}

// step lets one queue pair that is due do one thing; where none is, next is when one will be, or zero.
func (f *Fabric) step(now time.Time) (did bool, next time.Time) {
	f.ready = f.ready[:0]
	for _, q := range f.active {
		switch at := q.due(); {
		case !at.After(now):
			f.ready = append(f.ready, q)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	if len(f.ready) == 0 {
		return false, next
	}
	q := f.ready[f.rng.IntN(len(f.ready))]
	q.advance(now)
	q.rest()
	return true, time.Time{}
}

const helping = 8 // steps at most

// help does some of the work on the thread of who polls: where all cores spin, run would come to it late.
func (f *Fabric) help() {
	if !f.busy.Load() {
		return
	}
	now := time.Now()
	for range 1 + f.rng.IntN(helping) {
		if did, _ := f.step(now); !did {
			return
		}
	}
}

// work has the queue pair looked at by step.
func (q *qp) work() {
	if !q.active && q.state == stateRTS && len(q.sq) > 0 {
		q.active = true
		q.f.active = append(q.f.active, q)
		q.f.tally()
		q.f.nudge()
	}
}

// rest is work's reverse where there is none.
func (q *qp) rest() {
	if q.active && (q.state != stateRTS || len(q.sq) == 0) {
		q.active = false
		for i, o := range q.f.active {
			if o == q {
				q.f.active = append(q.f.active[:i], q.f.active[i+1:]...)
				q.f.tally()
				return
			}
		}
	}
}
