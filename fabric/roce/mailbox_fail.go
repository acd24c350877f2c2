package roce

import (
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
)

// fail ends the group for this rank with the first cause: it ends every kernel's wait and the other path. It blocks for nobody.
func (m *Mailbox) fail(local *fabric.Cause) {
	m.failing.Lock()
	if m.failed.Load() != nil {
		m.failing.Unlock()
		return
	}
	m.failed.Store(local)
	if m.own.words != nil {
		m.own.store(abortAt, 1)
	}
	owns := m.owns
	m.failing.Unlock()
	if owns {
		m.rest.Abort(local)
	}
	go m.settle(local, owns)
	m.proxy.rouse()
}

// settle hears the group's cause. That this rank has closed is none.
func (m *Mailbox) settle(local *fabric.Cause, owns bool) {
	cause := local
	if owns && !m.closing.Load() && !errors.Is(local.Kind, fabric.ErrClosed) {
		if m.mc.Arbiter != nil {
			cause = fabric.CauseOf(m.mc.Arbiter.Report(local))
		} else if m.c.Failed != nil {
			m.c.Failed(local)
		}
	}
	m.cause.Store(cause)
	close(m.settled)
}

// ended is what every call gets after the failure.
func (m *Mailbox) ended() error {
	if m.closing.Load() {
		return fabric.ErrClosed
	}
	<-m.settled
	if b := m.broken.Load(); b != nil {
		return b
	}
	return m.cause.Load()
}

// Abort ends the group on this rank with cause, which was agreed on elsewhere. Any goroutine, any time.
func (m *Mailbox) Abort(cause error) {
	if cause == nil {
		cause = &fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: m.rank, Text: "no reason given"}
	}
	m.fail(fabric.CauseOf(cause))
}

// look takes notice of a kernel that has given up, and of a cause that was agreed on.
func (m *Mailbox) look() {
	if m.failed.Load() != nil {
		return
	}
	if f := m.own.load(recordFailed); f != 0 {
		m.fail(m.gaveUp(f))
		return
	}
	if a := m.mc.Arbiter; a != nil {
		if cause := a.Cause(); cause != nil {
			m.fail(fabric.CauseOf(cause))
		}
	}
}

// gaveUp is the cause in the kernels' record of the wait that failed.
func (m *Mailbox) gaveUp(failed uint64) *fabric.Cause {
	l := &m.own
	why, epoch := failed>>failureShift&failureMask, failed&failureEpoch
	target, peer, stripe := l.load(recordTarget), l.load(recordPeer), l.load(recordStripe)
	seen, awaited := l.load(recordSeen), l.load(recordAwaited)
	if target >= uint64(m.world) || peer >= uint64(m.world) || stripe >= uint64(m.stripes) || int(peer) == m.rank {
		return m.deviceCause(fmt.Sprintf("rank %d: the record of a failed wait names target %d, rank %d, stripe %d, which cannot be", m.rank, target, peer, stripe), nil)
	}
	took := time.Duration(l.load(recordMicros)) * time.Microsecond
	if int(target) != m.rank || epoch > 1 { // the probe is no call
		m.log.gaveUp(m, int(target), int(l.bell(int(target), bellSizes+8*int(epoch%mailSlots))), epoch, awaited)
	}
	call := m.called(int(target), epoch, awaited)
	theirs := m.seqOf(int(target) == m.rank, epochOf(seen, epoch))
	h := m.hops[peer][stripe]
	switch {
	case parting(seen):
		return flow.PeerCause(int(peer), 0, fmt.Sprintf("rank %d has closed its part of the group: rank %d waits for it in %s", peer, m.rank, call), nil)
	case why == causeDesync:
		text := fmt.Sprintf("rank %d is in %s; rank %d is in %s", m.rank, call, peer, flagged(seen, theirs))
		return &fabric.Cause{Kind: fabric.ErrDesync, Peer: int(peer), From: m.rank, Text: text}
	case why == causeTimeout:
		text := fmt.Sprintf("rank %d has waited %v for rank %d in %s: stripe %d, by %s, has brought %s", m.rank, took, peer, call, stripe, h.name, broughtLast(theirs, seen))
		return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: int(peer), From: m.rank, Text: text}
	case why == causeAbort:
		text := fmt.Sprintf("rank %d: %s was ended while it waited for rank %d, stripe %d", m.rank, call, peer, stripe)
		return &fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: m.rank, Text: text}
	}
	return m.deviceCause(fmt.Sprintf("rank %d: a kernel's wait failed for reason %d in %s", m.rank, why, call), nil)
}

func broughtLast(seq, seen uint64) string {
	if seen == 0 || seq == 0 {
		return "nothing yet"
	}
	return fmt.Sprintf("seq %d last", seq)
}

// seqOf numbers calls as the engine makes them: the group's first one is the probe.
func (m *Mailbox) seqOf(group bool, epoch uint64) uint64 {
	if group {
		return epoch - 1
	}
	return epoch
}

// called names a call of this rank's.
func (m *Mailbox) called(target int, epoch, flag uint64) string {
	c, _, ok := callOfTag(flag >> flagShift)
	if !ok {
		return fmt.Sprintf("call %d of target %d", epoch, target)
	}
	text := fmt.Sprintf("%v seq %d, %d bytes", c, m.seqOf(target == m.rank, epoch), m.own.bell(target, bellSizes+8*int(epoch%mailSlots)))
	if target != m.rank {
		text += fmt.Sprintf(" with rank %d", target)
	}
	return text
}

// failQueue is for what the driver did to a group that cannot go on.
func (m *Mailbox) failQueue(text string, err error) error {
	m.fail(m.deviceCause(text, err))
	return m.ended()
}
