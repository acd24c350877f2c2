package bootstrap

import (
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	verdictWait = 200 * time.Millisecond // for rank 0's verdict, and for the ranks' last records
)

// These texts are the same on every rank, whatever each saw of it: nobody is left to compare notes with.
func rank0Failed() *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 0, From: -1, Text: "rank 0 failed"}
}

func leftCause(rank int) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: rank, From: -1, Text: fmt.Sprintf("rank %d left the group", rank)}
}

// Report hands over what this rank saw and returns the group's one cause, a *fabric.Cause that is the same on every
// rank. It blocks until rank 0's verdict; without one, for a bounded time, until the cause is that rank 0 failed.
func (s *Session) Report(local error) error {
	if local == nil || s.cause.Load() != nil {
		return s.Cause()
	}
	mine := s.asCause(local)
	if !s.post(func() { s.loop.report(mine) }) {
		return mine
	}
	select {
	case <-s.settled:
	case <-s.over:
	}
	if cause := s.cause.Load(); cause != nil {
		return cause
	}
	return mine
}

// Cause is the group's cause, a *fabric.Cause, and nil while it is healthy. It never blocks.
func (s *Session) Cause() error {
	if c := s.cause.Load(); c != nil {
		return c
	}
	return nil
}

// asCause gives err the form that travels: a sentinel, this rank as its first reporter, a bounded text.
func (s *Session) asCause(err error) *fabric.Cause {
	var c fabric.Cause
	if found := (*fabric.Cause)(nil); errors.As(err, &found) {
		c = *found
	} else {
		c = fabric.Cause{Kind: err, Peer: -1, Text: err.Error(), Err: err}
	}
	c.Kind = kinds[kindOf(c.Kind)]
	c.From = s.cfg.Rank
	if c.Peer < -1 || c.Peer >= s.cfg.World {
		c.Peer = -1
	}
	if c.Text == "" && c.Err != nil {
		c.Text = c.Err.Error()
	}
	c.Text = clip(c.Text)
	return &c
}

// arbiter is the loop's part in settling the cause. Rank 0's decides; the others ask it.
type arbiter struct {
	cause   *fabric.Cause   // settled; announced a moment later
	reports []*fabric.Cause // undecided, in order of arrival
	deaths  []*fabric.Cause // control connections that ended without a goodbye
	asked   *fabric.Cause   // what this rank has reported to rank 0
	askedAt time.Time

	subReports []subCause // rank 0: of isolated sub-groups, undecided
	verdicts   []*Sub     // decided, not announced yet

	collectUntil time.Time // rank 0: the ranks' records are awaited until then
	collected    []RankReport
}

func (l *loop) report(c *fabric.Cause) { l.reports = append(l.reports, c) }

// decide settles the cause once there is something to settle, after everything that is pending has been read: a death
// or a verdict that is already here outranks what follows from it.
func (l *loop) decide() {
	if l.cause != nil || len(l.reports)+len(l.deaths) == 0 {
		return
	}
	if l.readPending(); l.cause != nil {
		return
	}
	if l.rank == 0 {
		l.settle(l.verdict(), nil)
		return
	}
	switch up := l.links[0]; {
	case up.left && len(l.reports) > 0:
		l.settle(leftCause(0), nil)
	case up.left:
		l.deaths = nil
	case !up.alive():
		l.settle(rank0Failed(), nil)
	case l.asked == nil:
		l.asked, l.askedAt = l.reports[0], time.Now()
		up.send(frameReport, encodeCause(l.asked))
	}
}

// verdict is rank 0's rule: the first report wins, but a death outranks its consequences.
func (l *loop) verdict() *fabric.Cause {
	if len(l.reports) == 0 {
		return l.deaths[0]
	}
	first := l.reports[0]
	for _, d := range l.deaths {
		if consequence(first) && first.From != d.Peer {
			return d
		}
	}
	if errors.Is(first.Kind, fabric.ErrPeerFailed) && first.Peer >= 0 && l.hasLeft(first.Peer) {
		left := leftCause(first.Peer)
		left.From = first.From
		return left
	}
	return first
}

// consequence says whether a failure may follow from another rank's death; a desync cannot.
func consequence(c *fabric.Cause) bool {
	return errors.Is(c.Kind, fabric.ErrPeerFailed) || errors.Is(c.Kind, fabric.ErrAborted) || errors.Is(c.Kind, fabric.ErrTimeout)
}

// settle fixes the cause and queues it for the others; heard, which may be nil, is the link that it came from.
func (l *loop) settle(c *fabric.Cause, heard *link) {
	if l.cause != nil {
		return
	}
	if a := l.asked; a != nil && errors.Is(a.Kind, c.Kind) && a.Peer == c.Peer && a.From == c.From && a.Text == c.Text {
		c = a // the same, with what this rank's system said
	}
	l.cause, l.reports, l.deaths = c, nil, nil
	told := encodeCause(c)
	for _, k := range l.links {
		if k != heard {
			k.send(frameVerdict, told)
		}
	}
	if l.rank == 0 {
		l.collect(time.Now())
		return
	}
	progress, records := l.s.lastCalls(c.Group)
	l.links[0].send(frameRecords, append(encodeProgress(progress), encodeRecords(records)...))
}

// announce makes a settled cause known in this process. The others have been written to before: a program that ends as
// soon as it knows must not take the news with it.
func (l *loop) announce() {
	s := l.s
	if l.cause == nil || s.cause.Load() != nil {
		return
	}
	s.mu.Lock()
	s.cause.Store(l.cause)
	callbacks := s.onCause
	s.onCause = nil
	s.notify()
	s.mu.Unlock()
	s.settleSubs(l.cause)
	close(s.settled)
	s.end()
	for _, fn := range callbacks {
		fn(l.cause)
	}
	l.maybeEndRecords()
}

// expire ends waits for others that have lasted too long.
func (l *loop) expire(now time.Time) {
	if l.asked != nil && l.cause == nil {
		waited := now.Sub(l.askedAt)
		if waited >= l.s.cfg.VerdictBusy || waited >= verdictWait && !l.mon.alive(0, now) {
			l.readPending()
			if l.links[0].left {
				l.settle(leftCause(0), nil)
			}
			l.settle(rank0Failed(), nil)
		}
	}
	if !l.collectUntil.IsZero() && !now.Before(l.collectUntil) {
		l.endRecords()
	}
}

// collect begins, on rank 0, the wait for the others' last calls.
func (l *loop) collect(now time.Time) {
	l.collected = make([]RankReport, l.s.cfg.World)
	for r := range l.collected {
		l.collected[r] = RankReport{Rank: r, Host: l.s.places[r].host, Progress: fabric.Progress{Peer: -1}, Missing: "no answer"}
		switch k := l.byRank[r]; {
		case k != nil && k.left:
			l.collected[r].Missing = "it has left the group"
		case k != nil && !k.alive():
			l.collected[r].Missing = "its control connection has ended"
		}
	}
	progress, records := l.s.lastCalls(l.cause.Group)
	l.collected[0] = RankReport{Host: l.s.places[0].host, Progress: progress, Records: records}
	l.collectUntil = now.Add(verdictWait)
}

// lastCalls is what this rank has to say when the named group has failed.
func (s *Session) lastCalls(group string) (fabric.Progress, []fabric.Record) {
	s.mu.Lock()
	records, last := s.records, s.last
	s.mu.Unlock()
	var progress fabric.Progress
	var all []fabric.Record
	if last != nil {
		progress, all = last(group)
	} else if progress = s.sample(); records != nil {
		all = records()
	}
	return progress, all[max(0, len(all)-maxRecords):]
}

func (l *loop) gotRecords(rank int, b []byte) error {
	r := reader{b: b}
	p := r.progress()
	records, err := decodeRecords(r.rest())
	if r.bad {
		err = r.end("report of the last calls")
	}
	if err != nil || l.collectUntil.IsZero() {
		return err
	}
	l.collected[rank] = RankReport{Rank: rank, Host: l.s.places[rank].host, Progress: p, Records: records}
	l.maybeEndRecords()
	return nil
}

// maybeEndRecords ends the wait when nobody is left who could still answer.
func (l *loop) maybeEndRecords() {
	if l.collectUntil.IsZero() || l.s.cause.Load() == nil {
		return
	}
	for _, k := range l.links {
		if k.alive() && !k.left && l.collected[k.peer].Missing != "" {
			return
		}
	}
	l.endRecords()
}

func (l *loop) endRecords() {
	l.collectUntil = time.Time{}
	l.s.mu.Lock()
	fn := l.s.onReport
	l.s.mu.Unlock()
	if reports := l.collected; fn != nil {
		l.s.wg.Go(func() { fn(reports) })
	}
}
