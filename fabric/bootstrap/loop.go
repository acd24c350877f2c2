package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	goodbyeWait = 500 * time.Millisecond // for the others to take a goodbye
	maxRounds   = 16                     // of reading what is pending
)

// loop owns the control connections and everything that is decided from what they say. It runs on one goroutine, locked
// to its thread; others reach it by Session.post.
type loop struct {
	s       *Session
	rank    int
	p       poller
	links   []*link // rank 0: to every other rank, in rank order; else: to rank 0
	byRank  [fabric.MaxWorld]*link
	mon     *monitor
	known   [fabric.MaxWorld]fabric.Progress // of each rank, as it last said
	scratch []byte
	arbiter
	hub

	leaving bool // Close was called
	quit    bool // and has no more patience
	said    bool // goodbye
	saidAt  time.Time
}

func newLoop(s *Session, p poller, links []*link) *loop {
	c := &s.cfg
	l := &loop{s: s, rank: c.Rank, p: p, links: links, scratch: make([]byte, readChunk),
		mon: newMonitor(c.World, c.Heartbeat, c.VerdictBusy, c.VerdictIdle, time.Now())}
	for _, k := range links {
		l.byRank[k.peer] = k
		k.several = len(s.waysOf(k.peer)) > 1
	}
	l.hub = newHub(c.World)
	return l
}

func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !l.departed(time.Now()) {
		l.p.wait(l.links, l.patience(time.Now()))
		l.readReady()
		for _, f := range l.s.take() {
			f()
		}
		if now := time.Now(); l.beating() && l.mon.due(now) {
			l.beat(now)
		}
		l.decide()
		l.decideSubs()
		l.expire(time.Now())
		l.flush()
		l.prune(time.Now())
		l.announceSubs()
		l.announce()
	}
	l.finish()
}

// beating says whether signs of life and verdicts on their absence are still due.
func (l *loop) beating() bool {
	return l.mon.on() && l.cause == nil && !l.said && len(l.links) > 0
}

// patience is how long the poller may wait.
func (l *loop) patience(now time.Time) time.Duration {
	until := time.Time{}
	soonest := func(t time.Time) {
		if until.IsZero() || t.Before(until) {
			until = t
		}
	}
	if l.s.queued() {
		return 0 // the wake for it may have been used up by readPending
	}
	open := l.cause == nil
	if len(l.subReports) > 0 {
		soonest(now)
	}
	if open && len(l.deaths) > 0 {
		soonest(now)
	}
	if l.beating() {
		soonest(l.mon.next)
	}
	if open && l.asked != nil {
		if first := l.askedAt.Add(verdictWait); first.After(now) {
			soonest(first)
		} else {
			soonest(now.Add(10 * time.Millisecond))
		}
	}
	if !l.collectUntil.IsZero() {
		soonest(l.collectUntil)
	}
	if l.said {
		soonest(l.saidAt.Add(goodbyeWait))
	}
	if stalled := l.firstStall(); !stalled.IsZero() {
		soonest(stalled)
	}
	if until.IsZero() {
		return -1
	}
	return max(0, until.Sub(now))
}

// beat sends a sign of life to each link and judges those that have given none.
func (l *loop) beat(now time.Time) {
	late := l.mon.tick(now)
	l.askedAt = l.askedAt.Add(late)
	mine := l.s.sample()
	l.known[l.rank] = mine
	payload := encodeProgress(mine)
	for _, k := range l.links {
		// What is queued already is sign enough, and a link that takes nothing must not pile up.
		if !k.unsent() {
			k.send(frameBeat, payload)
			k.tell(1)
		}
	}
	l.flush()
	if l.readPending(); l.cause != nil || len(l.reports)+len(l.deaths) > 0 {
		return
	}
	waiting := mine.Waiting
	if l.rank == 0 {
		for _, k := range l.links {
			waiting |= l.known[k.peer].Waiting
		}
	}
	for _, k := range l.links {
		waitedFor := waiting&(1<<k.peer) != 0
		if !k.alive() || k.left || !l.mon.silent(k.peer, waitedFor, now) {
			continue
		}
		if l.rank != 0 {
			cause := rank0Failed()
			cause.Text += l.s.waysText(k.peer)
			l.settle(cause, nil)
			return
		}
		text := fmt.Sprintf("no sign of life for %v", l.mon.limit(waitedFor))
		if waitedFor {
			text += " while a call waited for it"
		}
		text += l.s.waysText(k.peer)
		l.settle(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: k.peer, From: 0, Text: text}, nil)
		return
	}
}

// readReady reads the paths that the poller found ready.
func (l *loop) readReady() {
	for _, k := range l.links {
		for _, p := range slices.Backward(k.paths) {
			if p.ready {
				if ended := l.read(k, p); ended != nil {
					l.dropPath(k, p, ended)
				}
			}
		}
		k.tell(takenStep)
	}
}

// read takes what a path has, and says why it is over.
func (l *loop) read(k *link, p *path) (ended error) {
	any, ended, err := k.read(p, l.scratch, func(t frameType, b []byte) error { return l.handle(k, t, b) })
	if any {
		l.mon.life(k.peer, time.Now())
	}
	if err != nil {
		l.drop(k, err)
	}
	return ended
}

// readPending reads until nothing is left to read.
func (l *loop) readPending() {
	for range maxRounds {
		l.p.wait(l.links, 0)
		ready := false
		for _, k := range l.links {
			for _, p := range k.paths {
				ready = ready || p.ready
			}
		}
		if !ready {
			return
		}
		l.readReady()
	}
}

func (l *loop) flush() {
	for _, k := range l.links {
		for _, p := range slices.Backward(k.paths) {
			if err := k.write(p); err != nil {
				// What it said before it died is still worth reading.
				if ended := l.read(k, p); ended != nil {
					err = ended
				}
				l.dropPath(k, p, err)
			}
		}
		k.trim()
		if kept := k.end() - k.acked; k.several && kept > maxUntaken {
			l.drop(k, fmt.Errorf("it has been sent %d bytes and does not say that it took them; at most %d are kept", kept, maxUntaken))
		}
	}
}

// drop ends a link. Without a goodbye from either side that is a death.
func (l *loop) drop(k *link, err error) {
	if !k.alive() {
		return
	}
	k.close()
	if k.left || l.said {
		return
	}
	text := "its control connection failed: " + err.Error()
	if errors.Is(err, io.EOF) {
		text = "its process ended: the control connection closed without a goodbye"
	}
	l.deaths = append(l.deaths, &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: k.peer, From: l.rank, Text: text, Err: err})
	l.maybeEndRecords()
}

func (l *loop) hasLeft(rank int) bool {
	return l.byRank[rank] != nil && l.byRank[rank].left
}

// departed moves a Close along, and says when the loop has nothing more to do.
func (l *loop) departed(now time.Time) bool {
	if !l.leaving {
		return false
	}
	undecided := l.cause == nil && len(l.reports)+len(l.deaths) > 0
	if !l.said && (l.quit || !undecided && l.collectUntil.IsZero()) {
		for _, k := range l.links {
			k.send(frameGoodbye, nil)
			k.bye = true
		}
		l.said, l.saidAt = true, now
		l.flush()
	}
	if l.quit {
		return true
	}
	if !l.said {
		return false
	}
	waiting := false
	for _, k := range l.links {
		if !k.alive() {
			continue
		}
		k.shutdown()
		if k.left && k.shut {
			k.close()
			continue
		}
		waiting = true
	}
	return !waiting || now.Sub(l.saidAt) >= goodbyeWait
}

// finish closes everything; after it post takes nothing more.
func (l *loop) finish() {
	clean := l.said
	for _, k := range l.links {
		clean = clean && !k.unsent()
		k.close()
	}
	l.s.mu.Lock()
	l.s.ended, l.s.clean = true, clean
	for _, a := range l.s.arrived {
		a.path.close()
	}
	l.s.arrived = nil
	l.p.close()
	l.s.notify()
	l.s.mu.Unlock()
	close(l.s.over)
}
