package hipgo

import (
	"context"
	"sync/atomic"
)

// Stream is a queue of work on a device: a small value over a raw hipStream_t. Calls on it only queue, unless they say
// otherwise, and are safe for concurrent use; but Close must be the last.
type Stream struct {
	d   *Device
	raw uintptr
	own *life // nil: somebody else's
}

// life says whether what several copies of a handle stand for is still there.
type life struct{ over atomic.Bool }

func (l *life) ended() bool { return l != nil && l.over.Load() }

// StreamFlags are hipStreamCreateWithFlags'.
type StreamFlags uint32

// The flags of a stream.
const (
	StreamDefault     StreamFlags = 0 // waits for the null stream, and the null stream for it
	StreamNonBlocking StreamFlags = 1
)

// NewStream makes a stream. It shares one of few hardware queues with others: a stream parked on a wait holds up those
// that share its queue.
//
// Implements: hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
func (d *Device) NewStream(flags StreamFlags) (Stream, error) {
	raw, code := d.rt.t.StreamCreate(d.ordinal, uint32(flags))
	return d.made(raw, "hipStreamCreateWithFlags", code)
}

// NewStreamPriority makes a non-blocking stream of a priority, lower numbers first. Late runtimes ignore it.
//
// Implements: hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
func (d *Device) NewStreamPriority(priority int) (Stream, error) {
	raw, code := d.rt.t.StreamCreatePriority(d.ordinal, uint32(StreamNonBlocking), priority)
	return d.made(raw, "hipStreamCreateWithPriority", code)
}

// PriorityRange is what NewStreamPriority takes: from least, a greater number, to greatest.
//
// Implements: hipError_t hipDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
func (d *Device) PriorityRange() (least, greatest int, err error) {
	least, greatest, code := d.rt.t.PriorityRange(d.ordinal)
	return least, greatest, d.rt.check("hipDeviceGetStreamPriorityRange", code)
}

// NewStreamCUMask makes a stream with a hardware queue of its own, on the compute units of mask, 32 to a word; nil: on all.
// The null stream waits for it. Errors: *UnsupportedError without FeatureCUMask.
//
// Implements: hipError_t hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t cuMaskSize, const uint32_t *cuMask)
func (d *Device) NewStreamCUMask(mask []uint32) (Stream, error) {
	if !d.rt.Has(FeatureCUMask) {
		return Stream{}, &UnsupportedError{Device: d.String(), Feature: "no hipExtStreamCreateWithCUMask", Need: "a newer HIP"}
	}
	if len(mask) == 0 {
		units, err := d.Attribute(AttributeMultiprocessorCount)
		if err != nil {
			return Stream{}, err
		}
		mask = fullMask(units)
	}
	raw, code := d.rt.t.StreamCreateMask(d.ordinal, mask)
	return d.made(raw, "hipExtStreamCreateWithCUMask", code)
}

func fullMask(units int) []uint32 {
	mask := make([]uint32, max(1, (units+31)/32))
	for i := range mask {
		mask[i] = ^uint32(0)
	}
	if rest := units % 32; rest > 0 {
		mask[len(mask)-1] = 1<<rest - 1
	}
	return mask
}

// WrapStream takes a raw hipStream_t of this device, the null stream too, that somebody else owns.
func (d *Device) WrapStream(raw uintptr) Stream { return Stream{d: d, raw: raw} }

func (d *Device) made(raw uintptr, call string, code int) (Stream, error) {
	if code != 0 {
		return Stream{}, d.rt.fail(call, code)
	}
	return Stream{d: d, raw: raw, own: &life{}}, nil
}

// Raw is the hipStream_t.
func (s Stream) Raw() uintptr { return s.raw }

// Device is the one that the stream is on.
func (s Stream) Device() *Device { return s.d }

func (s Stream) usable() error {
	if s.d == nil {
		return invalid("a zero Stream: make or wrap one first")
	}
	if s.own.ended() {
		return closed("stream")
	}
	return nil
}

// Close destroys the stream, for which HIP waits until the stream has run dry. A second Close, or that of a wrapped one,
// does nothing.
//
// Implements: hipError_t hipStreamDestroy(hipStream_t stream)
func (s Stream) Close() error {
	if s.own == nil || s.own.over.Swap(true) {
		return nil
	}
	code := s.d.rt.t.StreamDestroy(s.d.ordinal, s.raw)
	if code != 0 {
		s.own.over.Store(false)
	}
	return s.d.rt.check("hipStreamDestroy", code)
}

// Query says whether the stream has run dry. Of a capturing stream it is an error.
//
// Implements: hipError_t hipStreamQuery(hipStream_t stream)
func (s Stream) Query() (bool, error) {
	if err := s.usable(); err != nil {
		return false, err
	}
	code := s.d.rt.t.StreamQuery(s.d.ordinal, s.raw)
	return s.d.ready("hipStreamQuery", code)
}

func (d *Device) ready(call string, code int) (bool, error) {
	if code == codeNotReady {
		return false, nil
	}
	return code == 0, d.rt.check(call, code)
}

// Synchronize returns once the stream has run dry, or with ctx's error. It asks again and again and never blocks inside HIP,
// where it would hold up whoever must release the stream.
func (s Stream) Synchronize(ctx context.Context) error { return poll(ctx, s.Query) }

// CaptureStatus is a stream's.
type CaptureStatus int

// The states of a capture.
const (
	CaptureNone        CaptureStatus = 0
	CaptureActive      CaptureStatus = 1
	CaptureInvalidated CaptureStatus = 2 // only EndCapture is left
)

// Capturing says whether the stream is being captured. Ask before a stream value operation: runtimes before late HIP 7 run
// it at once, outside the graph.
//
// Implements: hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus)
func (s Stream) Capturing() (CaptureStatus, error) {
	if err := s.usable(); err != nil {
		return CaptureNone, err
	}
	status, code := s.d.rt.t.StreamCapturing(s.d.ordinal, s.raw)
	return CaptureStatus(status), s.d.rt.check("hipStreamIsCapturing", code)
}
