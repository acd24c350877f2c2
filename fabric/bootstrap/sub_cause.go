package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Report hands over what this rank saw in the sub-group and returns the one cause, a *fabric.Cause of the sub-group's
// ranks that is the same on all of them. It ends the session, or the nearest isolated sub-group around it, too. It
// blocks until rank 0's verdict, for a bounded time.
func (u *Sub) Report(local error) error {
	if c := u.cause.Load(); c != nil || local == nil {
		return u.Cause()
	}
	mine := u.outward(local)
	if u.life.Err() == nil {
		u.raise(mine)
		<-u.life.Done() // ended by the verdict, or by a Close
	}
	if c := u.cause.Load(); c != nil {
		return c
	}
	return u.inward(mine)
}

// Cause is why the sub-group ended, a *fabric.Cause, nil while it is healthy. It never blocks.
func (u *Sub) Cause() error {
	if c := u.cause.Load(); c != nil {
		return c
	}
	return nil
}

// OnCause is as Session's.
func (u *Sub) OnCause(fn func(cause error)) {
	u.s.mu.Lock()
	cause := u.cause.Load()
	if cause == nil {
		u.onCause = append(u.onCause, fn)
	}
	u.s.mu.Unlock()
	if cause != nil {
		fn(cause)
	}
}

// raise brings a cause, of the session's ranks, to whoever decides on it, and waits while that is bounded to take time.
func (u *Sub) raise(c *fabric.Cause) {
	s := u.s
	s.mu.Lock()
	isolated, parent := u.isolated, u.parent
	s.mu.Unlock()
	switch {
	case !isolated && parent != nil:
		parent.raise(c)
	case !isolated:
		_ = s.Report(c)
	case s.post(func() { s.loop.reportSub(subCause{u.key, u.set, c}) }):
		patience := time.NewTimer(s.cfg.VerdictBusy)
		defer patience.Stop()
		select {
		case <-u.life.Done():
		case <-patience.C:
			_ = u.noVerdict()
		}
	}
}

// noVerdict ends the session, whose rank 0 does not answer.
func (u *Sub) noVerdict() error {
	return u.s.Report(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 0,
		Text: fmt.Sprintf("rank 0 gave no verdict on group %q in %v", u.name, u.s.cfg.VerdictBusy)})
}

// settle makes a cause, of the session's ranks, that of u and of all below it.
func (u *Sub) settle(c *fabric.Cause) {
	s := u.s
	s.mu.Lock()
	if u.cause.Load() != nil || s.subs[u.key] != u {
		s.mu.Unlock()
		return
	}
	mine := u.inward(c)
	u.outer = c
	u.cause.Store(mine)
	callbacks := u.onCause
	u.onCause = nil
	below := make([]*Sub, 0, len(u.children))
	for child := range u.children {
		below = append(below, child)
	}
	s.notify()
	s.mu.Unlock()
	for _, fn := range callbacks {
		fn(mine)
	}
	u.end()
	for _, child := range below {
		child.settle(c)
	}
}

// outward gives what this rank saw the form that travels: of the session's ranks, with the group's name.
func (u *Sub) outward(err error) *fabric.Cause {
	c := *fabric.CauseOf(err)
	if c.Peer >= 0 && c.Peer < len(u.members) {
		c.Peer = u.members[c.Peer]
	} else {
		c.Peer = -1
	}
	if c.Group == "" && u.name != u.s.cfg.Group {
		c.Group = u.name
	}
	return u.s.asCause(&c)
}

// inward gives a cause of the session's ranks those of the sub-group. A rank that is none of them is named in the text.
func (u *Sub) inward(c *fabric.Cause) *fabric.Cause {
	mine := *c
	mine.Peer, mine.From = slices.Index(u.members, c.Peer), slices.Index(u.members, c.From)
	if c.Peer >= 0 && mine.Peer < 0 {
		mine.Text = fmt.Sprintf("rank %d of group %q", c.Peer, u.s.cfg.Group)
		if c.Text != "" {
			mine.Text += ": " + c.Text
		}
	}
	return &mine
}

// inwardError is inward for what a session's method gave.
func (u *Sub) inwardError(err error) error {
	var c *fabric.Cause
	if errors.As(err, &c) {
		return u.inward(c)
	}
	if op := (*fabric.OpError)(nil); errors.As(err, &op) {
		return op.Err
	}
	return err
}

// gone is the error of every call once the sub-group has ended.
func (u *Sub) gone(op string) error {
	over := u.life.Err() != nil // first: a cause is there before life ends by it
	if c := u.cause.Load(); c != nil {
		return u.opError(op, c)
	}
	if over {
		return u.opError(op, fabric.ErrClosed)
	}
	return nil
}

func (u *Sub) opError(op string, err error) error {
	e := &fabric.OpError{Op: op, Group: u.name, Rank: u.rank, Peer: -1, From: -1, Err: err}
	var c *fabric.Cause
	if errors.As(err, &c) {
		e.Peer, e.From, e.Part = c.Peer, c.From, c.Part
	}
	return e
}

// subCause is a cause of an isolated sub-group, of the session's ranks.
type subCause struct {
	key   string
	set   uint64
	cause *fabric.Cause
}

func (r *subCause) encode() []byte {
	var w writer
	w.text(r.key)
	w.u64(r.set)
	return append(w, encodeCause(r.cause)...)
}

func (l *loop) heardSubCause(b []byte) (subCause, error) {
	r := reader{b: b}
	c := subCause{key: r.text(maxKey), set: r.u64()}
	if c.key == "" || c.set&^l.everybody() != 0 {
		r.bad = true
	}
	var err error
	if c.cause, err = l.heardCause(r.rest()); err == nil {
		err = r.end("sub-group's cause")
	}
	return c, err
}

func (l *loop) everybody() uint64 { return ^uint64(0) >> (64 - l.s.cfg.World) }

// reportSub asks rank 0 for a verdict.
func (l *loop) reportSub(c subCause) {
	if l.rank == 0 {
		l.subReports = append(l.subReports, c)
		return
	}
	l.links[0].send(frameSubReport, c.encode())
}

// decideSubs is rank 0's verdict on sub-groups: it passes each report on to all members, in one order, and they take
// the first. A death that is already here ends the session, and with it the sub-group.
func (l *loop) decideSubs() {
	if len(l.subReports) == 0 || l.rank != 0 {
		return
	}
	l.readPending()
	reports := l.subReports
	l.subReports = nil
	if l.cause != nil || len(l.deaths) > 0 {
		return
	}
	for _, c := range reports {
		if p := c.cause.Peer; p >= 0 && errors.Is(c.cause.Kind, fabric.ErrPeerFailed) && l.hasLeft(p) {
			left := leftCause(p)
			left.From, left.Group = c.cause.From, c.cause.Group
			c.cause = left
		}
		told := c.encode()
		for _, k := range l.links {
			if c.set&(1<<k.peer) != 0 {
				k.send(frameSubVerdict, told)
			}
		}
		l.forgetGathers(c.key)
		if c.set&1 != 0 {
			l.heardSubVerdict(c)
		}
	}
}

// heardSubVerdict notes the first verdict; it is announced once the others have been written to.
func (l *loop) heardSubVerdict(c subCause) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if u := l.s.subs[c.key]; u != nil && u.outer == nil && !u.agreed {
		u.outer = c.cause
		l.verdicts = append(l.verdicts, u)
	}
}

// announceSubs ends the sub-groups that have a verdict.
func (l *loop) announceSubs() {
	verdicts := l.verdicts
	l.verdicts = nil
	for _, u := range verdicts {
		u.settle(u.outer)
	}
}

// settleSubs ends all sub-groups with the session's cause.
func (s *Session) settleSubs(c *fabric.Cause) {
	s.mu.Lock()
	all := make([]*Sub, 0, len(s.subs))
	for _, u := range s.subs {
		all = append(all, u)
	}
	s.mu.Unlock()
	for _, u := range all {
		u.settle(c)
	}
}
