package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	// closeWithin is how long Close waits for what the device may still use.
	closeWithin = 5 * time.Second
	// freeWithin is how long it then waits for the driver to take things back, which may wait for every stream of the device,
	// those of other groups too.
	freeWithin = time.Second
)

// Close ends this rank's use of the group. Streams that wait are let go. It frees once no copy can land and every stream
// has passed the group's calls and the graphs launched on streams that they were captured from, for which it waits five
// seconds at most; its error then names what is not freed, which happens later, should the device get so far. Graphs with calls
// must not be launched any more, and those on other streams must have ended. A driver that frees only once other streams have
// run dry does so later, and Close is no error. It is idempotent.
func (t *Transport) Close() error {
	t.closed.Do(func() { t.closeErr = t.close() })
	return t.closeErr
}

func (t *Transport) close() error {
	t.closing.Store(true)
	t.fail(&fabric.Cause{Kind: fabric.ErrClosed, Peer: -1, From: t.rank})
	t.proxy.rouse()
	wire := t.inner.Close() // the others hear of it, whatever the device does
	unused, freed := make(chan struct{}), make(chan error, 1)
	go func() {
		<-t.drained
		t.emptied()
		close(unused)
		freed <- errors.Join(t.proxy.drop(t), t.free())
	}()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-unused:
		return errors.Join(wire, t.given(freed))
	case <-late.C:
		what := "its streams have not passed the calls that were queued on them"
		if !t.isDrained.Load() {
			what = fmt.Sprintf("a copy of its may still land; the proxy was last in %s", t.proxy.where())
		}
		text := fmt.Sprintf("rank %d: %d bytes of pinned memory and the streams on %v are not freed yet: %s", t.rank,
			len(t.words.mem)+len(t.slabs.mem), t.d, what)
		return errors.Join(wire, &deviceError{text, nil})
	}
}

// given waits for the driver to take back what is no longer used. What it says later is logged.
func (t *Transport) given(freed <-chan error) error {
	late := time.NewTimer(freeWithin)
	defer late.Stop()
	select {
	case err := <-freed:
		return err
	case <-late.C:
	}
	device := t.d.String()
	t.c.Logger.Info("a closed group's memory is freed later: the driver waits, as for streams of other groups", "group", t.c.Group, "device", device)
	go func() {
		if err := <-freed; err != nil {
			t.c.Logger.Warn("a closed group's memory is not freed", "group", t.c.Group, "device", device, "err", err)
		}
	}()
	return nil
}

// emptied returns once nobody uses this group's words any more: no call in progress here, and no stream that has not
// passed its waits.
func (t *Transport) emptied() {
	timer := time.NewTimer(restLeast)
	defer timer.Stop()
	rest := func() {
		timer.Reset(restMost)
		<-timer.C
	}
	for t.inside.Load() > 0 {
		rest()
	}
	for _, stream := range t.used.Left() {
		for !t.hasPassed(stream) {
			rest()
		}
	}
}

// hasPassed says whether a stream has passed all that is on it. One that the driver does not know is no more: to end it was
// to wait for it. One that is being captured can be asked afterwards: an event would be part of the engine's graph.
func (t *Transport) hasPassed(stream uintptr) bool {
	if captures, err := t.d.Capturing(stream); err != nil || captures {
		return refused(err)
	}
	if err := t.d.Record(stream, t.sync.event); err != nil {
		return refused(err)
	}
	for {
		done, err := t.d.Query(t.sync.event)
		if done || err != nil {
			return err == nil
		}
		timer := time.NewTimer(restMost)
		<-timer.C
	}
}

// drop ends the proxy's part in a group, and the proxy if it was the group's own or is closed and has no other.
func (p *Proxy) drop(t *Transport) error {
	if last := p.remove(t); last || t.ownProxy {
		return p.end()
	}
	return nil
}

// free gives back what open has got.
func (t *Transport) free() error {
	var errs []error
	if t.gate != nil {
		errs = append(errs, t.gate.free())
	}
	for _, mem := range [][]byte{t.words.mem, t.slabs.mem} {
		if mem != nil {
			errs = append(errs, t.d.FreeHost(mem))
		}
	}
	if t.sync.opened {
		errs = append(errs, t.d.CloseStream(0, t.sync.event))
	}
	return errors.Join(errs...)
}

// hasDrained waits for the copies of a failed group.
func (t *Transport) hasDrained(limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-t.drained:
		return true
	case <-late.C:
		return false
	}
}

// Capture prepares for the engine's own capture of s, before that begins.
func (t *Transport) Capture(s fabric.Stream) (fabric.PlanTransport, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	return t.gate.capture(uintptr(s))
}
