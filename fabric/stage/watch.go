package stage

import (
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	watchEvery = 25 * time.Millisecond
	// releaseWithin is how many ticks the proxy has to let the streams of a failed group go; then the watch does.
	releaseWithin = int(100 * time.Millisecond / watchEvery)
	// landWithin is how many ticks the copies of a failed group have to land, before its error says that they may still.
	landWithin = int(time.Second / watchEvery)
)

// watch looks after the proxy, which a driver can hold: it counts its own ticks, so that a process that was stopped blames
// nobody.
func (p *Proxy) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last, stuck := uint64(0), 0
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		if beat := p.beat.Load(); beat != last || p.parked.Load() {
			last, stuck = beat, 0
		} else {
			stuck++
		}
		for _, t := range *p.groups.Load() {
			t.watch(stuck)
		}
	}
}

func (t *Transport) watch(stuck int) {
	if t.failed.Load() == nil {
		if a := t.c.Arbiter; a != nil {
			if cause := a.Cause(); cause != nil {
				t.fail(fabric.CauseOf(cause))
			}
		}
		held := time.Duration(stuck) * watchEvery
		if stuck >= releaseWithin && t.c.Timeout >= 0 && held >= t.c.Timeout {
			t.fail(t.deviceCause(fmt.Sprintf("rank %d: %v has held the proxy in %s for %v", t.rank, t.d, t.proxy.where(), held), nil))
			t.release()
		}
		return
	}
	if t.isDrained.Load() {
		return
	}
	t.overdue++
	if t.overdue >= releaseWithin && t.release() {
		t.breakDown(fmt.Sprintf("rank %d: the proxy is held in %s on %v; its streams were released without it", t.rank, t.proxy.where(), t.d))
	}
	if t.overdue >= landWithin {
		t.breakDown(fmt.Sprintf("rank %d: a copy on %v has not landed since the failure, and still may", t.rank, t.d))
	}
}

// where says what the proxy was in last.
func (p *Proxy) where() string { return methodNames[p.at.Load()] }
