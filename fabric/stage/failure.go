package stage

import (
	"errors"

	"github.com/hipfabric/hipfabric/fabric"
)

// inward is the Arbiter of the Collective inside: it answers at once, so that no verdict is awaited while streams are
// parked.
type inward struct{ t *Transport }

func (a inward) Report(local error) error {
	a.t.fail(fabric.CauseOf(local))
	return a.t.failed.Load()
}

func (a inward) Cause() error {
	if c := a.t.failed.Load(); c != nil {
		return c
	}
	return nil
}

// fail ends the group for this rank: the wire first, so that nothing writes or reads a buffer that a released stream gives
// back; the streams are let go by the proxy, or by the watch. It blocks for nobody and keeps the first cause.
func (t *Transport) fail(local *fabric.Cause) {
	if !t.failed.CompareAndSwap(nil, local) {
		return
	}
	t.wire.Abort(local)
	go t.settle(local)
	if t.proxy != nil {
		t.proxy.rouse()
	}
}

// settle hears the group's cause. That this rank has closed is none, be it by Close or by the Abort before it.
func (t *Transport) settle(local *fabric.Cause) {
	cause := local
	if t.c.Arbiter != nil && !t.closing.Load() && !errors.Is(local.Kind, fabric.ErrClosed) {
		cause = fabric.CauseOf(t.c.Arbiter.Report(local))
	}
	t.cause.Store(cause)
	close(t.settled)
}

// breakDown notes that a failed group's device does not behave either.
func (t *Transport) breakDown(text string) {
	t.broken.CompareAndSwap(nil, t.deviceCause(text, nil))
}

// ended is what every call gets after the failure.
func (t *Transport) ended() error {
	if t.closing.Load() {
		return fabric.ErrClosed
	}
	<-t.settled
	if b := t.broken.Load(); b != nil {
		return b
	}
	return t.cause.Load()
}

// release lets every stream through that waits, or will; false when that was done before. The wire ends first, in case the
// one who failed has not come so far yet.
func (t *Transport) release() bool {
	t.releasing.Lock()
	defer t.releasing.Unlock()
	if t.released.Load() {
		return false
	}
	t.wire.Abort(t.failed.Load())
	t.words.releaseAll(max(t.reason.Load(), reasonCall))
	t.released.Store(true)
	return true
}

// end is the step of a failed group: off the wire, the streams let go, then what is left of its copies.
func (t *Transport) end() bool {
	if t.isDrained.Load() {
		return false
	}
	if !t.released.Load() {
		t.wire.Abort(t.failed.Load()) // fail may not have come so far
		if t.wired < t.begun && t.job(t.wired).phase == wiring {
			_, _ = t.flight.Poll() // this ends the call on it
		}
		t.release()
		return true
	}
	for _, c := range []*copier{&t.proxy.down, &t.proxy.up} {
		if c.owner == t && !c.settle(t.proxy) {
			return false
		}
	}
	t.isDrained.Store(true)
	close(t.drained)
	return true
}

// Abort ends the group on this rank with cause, which was agreed on elsewhere. Any goroutine, any time.
func (t *Transport) Abort(cause error) {
	if cause == nil {
		cause = &fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: t.rank, Text: "no reason given"}
	}
	t.fail(fabric.CauseOf(cause))
}
