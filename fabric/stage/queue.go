package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Queue queues a checked call on s and returns: fabric.StreamTransport says the rest. Its errors are ErrInvalid for a buffer
// or a stream that is none of the device's, ErrCapture for a stream that captures without a plan, ErrClosed, or the
// group's cause.
func (t *Transport) Queue(s fabric.Stream, c *fabric.Call) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	if err := t.inspect("in", c.Device.In, c.Device.InBytes); err != nil {
		return err
	}
	if err := t.inspect("out", c.Device.Out, c.Device.OutBytes); err != nil {
		return err
	}
	if c.Device.Lengths != 0 {
		if err := t.inspect("lengths", c.Device.Lengths, 4*t.world); err != nil {
			return err
		}
	}
	return t.gate.queue(uintptr(s), c)
}

// enter begins a use of what Close frees, unless the group has ended.
func (t *Transport) enter() error {
	t.inside.Add(1)
	if t.failed.Load() != nil {
		t.leave()
		return t.ended()
	}
	return nil
}

func (t *Transport) leave() { t.inside.Add(-1) }

// inspect refuses memory that the device cannot reach.
func (t *Transport) inspect(what string, p fabric.DevPtr, n int) error {
	if n == 0 || t.registered.gave(p, n) {
		return nil
	}
	_, err := t.d.Inspect(uintptr(p), n)
	switch {
	case err == nil:
		return nil
	case refused(err):
		return fabric.Invalidf("%s, %d bytes at %#x, is no memory of %v: %v", what, n, uintptr(p), t.d, err)
	default:
		return t.failQueue(fmt.Sprintf("rank %d: asking what is at %#x on %v: %v", t.rank, uintptr(p), t.d, err), err)
	}
}

// refused says whether the driver found its arguments wrong, and did nothing.
func refused(err error) bool {
	if err == nil { // what follows allocates
		return false
	}
	var e interface{ Invalid() bool }
	return errors.As(err, &e) && e.Invalid()
}

// capturing asks a stream whether it captures.
func (t *Transport) capturing(stream uintptr) (bool, error) {
	yes, err := t.d.Capturing(stream)
	switch {
	case err == nil:
		return yes, nil
	case refused(err):
		return false, fabric.Invalidf("stream %#x is none of %v: %v", stream, t.d, err)
	default:
		return false, t.failQueue(fmt.Sprintf("rank %d: asking stream %#x on %v whether it captures: %v", t.rank, stream, t.d, err), err)
	}
}

// refuse is for a use of a stream whose first operation the driver refused: the call is as if it had never been made.
func (t *Transport) refuse(stream uintptr, fresh bool, c *fabric.Call, err error) error {
	t.takeBack(stream, fresh)
	return fabric.Invalidf("stream %#x takes no %v of %v, whose stream it must be: %v", stream, c.Op, t.d, err)
}

// takeBack undoes a use of a stream on which nothing was queued.
func (t *Transport) takeBack(stream uintptr, fresh bool) {
	t.queued.Add(^uint64(0))
	t.used.LaidOut()
	if fresh {
		t.used.Passed(stream, t.used.Laid())
	}
}

// queueFailed is for an operation that may be half on the stream: the group cannot go on.
func (t *Transport) queueFailed(stream uintptr, c *fabric.Call, err error) error {
	return t.failQueue(fmt.Sprintf("rank %d: queueing %v on stream %#x of %v: %v", t.rank, c.Op, stream, t.d, err), err)
}

func (t *Transport) failQueue(text string, err error) error {
	t.fail(t.deviceCause(text, err))
	return t.ended()
}

func capturef(format string, args ...any) error { return &captureError{fmt.Sprintf(format, args...)} }

type captureError struct{ text string }

func (e *captureError) Error() string { return fabric.ErrCapture.Error() + ": " + e.text }
func (e *captureError) Unwrap() error { return fabric.ErrCapture }

// patience waits until there is room, while calls go on to move: eager ones, or a graph's.
func (t *Transport) patience(room func() bool) error {
	if room() {
		return nil
	}
	t.proxy.called()
	timer := time.NewTimer(restLeast)
	defer timer.Stop()
	last, since := t.moved.Load(), time.Now()
	for {
		<-timer.C
		if t.failed.Load() != nil {
			return t.ended()
		}
		if room() {
			return nil
		}
		// What is on the wire is for the wire to judge, and to name whom it waits for.
		if at := t.moved.Load(); at != last || t.inner.Progress().Running {
			last, since = at, time.Now()
		}
		if limit := t.c.Timeout + t.c.Timeout/8; limit >= 0 && time.Since(since) >= limit {
			t.fail(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: t.rank, From: t.rank,
				Text: fmt.Sprintf("rank %d: as many calls are queued as can be, %d, and none has moved for %v: no stream has reached number %d, which is next",
					t.rank, ringSlots, limit, t.finished.Load()+1)})
			return t.ended()
		}
		timer.Reset(restAfter(time.Since(since)))
	}
}
