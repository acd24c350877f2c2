package roce

import (
	"time"

	spin "github.com/hipfabric/hipfabric/fabric/internal/link"
)

const (
	lookEvery = 64 // rounds between two looks at the clock
	restLeast = 20 * time.Microsecond
	restMost  = time.Millisecond
)

// restAfter is how long to rest when nothing has moved for idle: a small share of that, so that what comes is not seen much later.
func restAfter(idle time.Duration) time.Duration { return min(max(idle/32, restLeast), restMost) }

// Wait spins, then looks after rests, until the call is done; fabric.Pending says the rest.
func (p *pending) Wait(idle time.Duration) error {
	if err := p.t.enter(); err != nil {
		return err
	}
	defer p.t.leave()
	return p.t.ended(p.wait(idle))
}

func (p *pending) wait(idle time.Duration) error {
	t := p.t
	moved, since := p.moved, time.Time{}
	for {
		for range lookEvery {
			if done, err := p.step(); done || err != nil {
				if t.waiting.Load() != 0 {
					t.waiting.Store(0)
				}
				return err
			}
			if t.c.Yield {
				spin.YieldThread()
			}
		}
		if c := t.cause.Load(); c != nil {
			return c
		}
		now := time.Now()
		if p.moved != moved || since.IsZero() {
			if moved, since = p.moved, now; t.waiting.Load() != 0 {
				t.waiting.Store(0)
			}
			continue
		}
		t.polls.Add(lookEvery)
		still := now.Sub(since)
		switch {
		case idle >= 0 && still >= idle:
			p.stalled()
			return p.timedOut(still)
		case still < t.c.SpinFor:
			continue
		}
		t.parks.Add(1)
		t.rest.Reset(restAfter(still))
		select {
		case <-t.rest.C:
		case <-t.wake:
			t.rest.Stop()
		}
	}
}
