package hipgo

import (
	"context"
	"time"
)

// Event is a mark in a stream: a small value over a raw hipEvent_t.
type Event struct {
	d   *Device
	raw uintptr
	own *life
}

// EventFlags are hipEventCreateWithFlags'.
type EventFlags uint32

// The flags of an event.
const (
	EventDefault       EventFlags = 0
	EventBlockingSync  EventFlags = 1
	EventDisableTiming EventFlags = 2
	EventInterprocess  EventFlags = 4
)

// NewEvent makes an event.
//
// Implements: hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
func (d *Device) NewEvent(flags EventFlags) (Event, error) {
	raw, code := d.rt.t.EventCreate(d.ordinal, uint32(flags))
	if code != 0 {
		return Event{}, d.rt.fail("hipEventCreateWithFlags", code)
	}
	return Event{d: d, raw: raw, own: &life{}}, nil
}

// WrapEvent takes a raw hipEvent_t of this device that somebody else owns.
func (d *Device) WrapEvent(raw uintptr) Event { return Event{d: d, raw: raw} }

// Raw is the hipEvent_t.
func (e Event) Raw() uintptr { return e.raw }

func (e Event) usable() error {
	if e.d == nil {
		return invalid("a zero Event: make or wrap one first")
	}
	if e.own.ended() {
		return closed("event")
	}
	return nil
}

// Record puts the mark at the stream's end.
//
// Implements: hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
func (e Event) Record(s Stream) error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := s.usable(); err != nil {
		return err
	}
	return e.d.rt.check("hipEventRecord", e.d.rt.t.EventRecord(e.d.ordinal, e.raw, s.raw))
}

// Query says whether the device has passed the last Record. An event that was never recorded counts as passed.
//
// Implements: hipError_t hipEventQuery(hipEvent_t event)
func (e Event) Query() (bool, error) {
	if err := e.usable(); err != nil {
		return false, err
	}
	return e.d.ready("hipEventQuery", e.d.rt.t.EventQuery(e.d.ordinal, e.raw))
}

// Synchronize returns once the device has passed the last Record, or with ctx's error. As Stream.Synchronize, it polls.
func (e Event) Synchronize(ctx context.Context) error { return poll(ctx, e.Query) }

// Since is the time on the device from start to e, both recorded with timing and passed.
//
// Implements: hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
func (e Event) Since(start Event) (time.Duration, error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	if err := start.usable(); err != nil {
		return 0, err
	}
	ms, code := e.d.rt.t.EventElapsed(e.d.ordinal, start.raw, e.raw)
	return time.Duration(float64(ms) * float64(time.Millisecond)), e.d.rt.check("hipEventElapsedTime", code)
}

// Close destroys the event. A second Close, or that of a wrapped one, does nothing.
//
// Implements: hipError_t hipEventDestroy(hipEvent_t event)
func (e Event) Close() error {
	if e.own == nil || e.own.over.Swap(true) {
		return nil
	}
	code := e.d.rt.t.EventDestroy(e.d.ordinal, e.raw)
	if code != 0 {
		e.own.over.Store(false)
	}
	return e.d.rt.check("hipEventDestroy", code)
}
