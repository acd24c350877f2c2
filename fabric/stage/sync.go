package stage

import (
	"context"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

// syncer is the event that waits for streams go by. One wait has it at a time.
type syncer struct {
	event  uintptr
	opened bool
	free   chan struct{} // has a token while in use
}

func (s *syncer) open(d Driver) (err error) {
	_, s.event, _, err = d.OpenStream(true)
	s.opened = err == nil
	return err
}

// Sync returns once s has passed everything queued so far: nil; or the group's *Cause, once no copy of this rank can land any
// more, nor a kernel on s touch a buffer, or once a second has passed, which makes it ErrDevice; or ctx's error, which
// leaves the group alone. One at a time waits; others wait for it.
func (t *Transport) Sync(ctx context.Context, s fabric.Stream) error {
	t.inside.Add(1)
	defer t.leave()
	stream := uintptr(s)
	select {
	case t.sync.free <- struct{}{}:
		defer func() { <-t.sync.free }()
	case <-t.settled:
		return t.lost(ctx, stream, false)
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.failed.Load() != nil {
		return t.lost(ctx, stream, true)
	}
	if yes, err := t.capturing(stream); err != nil || yes {
		if yes {
			err = capturef("stream %#x is being captured: nothing of it runs before its graph is launched", stream)
		}
		return err
	}
	upTo := t.used.Laid()
	if err := t.d.Record(stream, t.sync.event); err != nil {
		if refused(err) {
			return fabric.Invalidf("stream %#x is none of %v: %v", stream, t.d, err)
		}
		return t.failQueue(fmt.Sprintf("rank %d: recording an event on stream %#x of %v: %v", t.rank, stream, t.d, err), err)
	}
	done, err := t.await(ctx)
	switch {
	case err != nil:
		return err
	case t.failed.Load() != nil:
		return t.lost(ctx, stream, true)
	case done:
		t.used.Passed(stream, upTo)
	}
	return nil
}

// await polls the event: at first without pause, then after short rests.
func (t *Transport) await(ctx context.Context) (bool, error) {
	began := time.Now()
	var timer *time.Timer
	for {
		for range clockEvery {
			if done, err := t.d.Query(t.sync.event); err != nil {
				return false, t.failQueue(fmt.Sprintf("rank %d: asking after an event on %v: %v", t.rank, t.d, err), err)
			} else if done {
				return true, nil
			}
			if t.failed.Load() != nil {
				return false, nil
			}
			if t.c.Yield {
				link.YieldThread()
			}
		}
		idle := time.Since(began)
		if idle < syncSpin {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			continue
		}
		rest := restAfter(idle)
		if timer == nil {
			timer = time.NewTimer(rest)
			defer timer.Stop()
		} else {
			timer.Reset(rest)
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-t.settled:
			return false, nil
		}
	}
}

// syncSpin is shorter than the proxy's: there may be one core for both.
const syncSpin = 100 * time.Microsecond

// lost is what a wait on a failed group gives. mine says that the event is this wait's.
func (t *Transport) lost(ctx context.Context, stream uintptr, mine bool) error {
	late := time.NewTimer(time.Duration(landWithin+2) * watchEvery)
	defer late.Stop()
	select {
	case <-t.drained:
	case <-late.C:
		return t.ended()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.c.Gate != Kernels {
		return t.ended()
	}
	// The proxy copies nothing any more, but a kernel may: those that waited were let go, and run dry at once.
	if !mine {
		select {
		case t.sync.free <- struct{}{}:
			defer func() { <-t.sync.free }()
		case <-late.C:
			return t.notDry(stream)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if captures, err := t.d.Capturing(stream); err == nil && captures {
		return t.ended()
	}
	if err := t.d.Record(stream, t.sync.event); err != nil {
		if refused(err) {
			return t.ended()
		}
		return t.notDry(stream)
	}
	look := time.NewTicker(restLeast)
	defer look.Stop()
	for {
		if done, err := t.d.Query(t.sync.event); err != nil {
			return t.notDry(stream)
		} else if done {
			return t.ended()
		}
		select {
		case <-look.C:
		case <-late.C:
			return t.notDry(stream)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notDry is for a stream whose kernels may still run, as far as anybody knows.
func (t *Transport) notDry(stream uintptr) error {
	t.breakDown(fmt.Sprintf("rank %d: stream %#x on %v has not passed the group's kernels since the failure, and they may still touch their buffers",
		t.rank, stream, t.d))
	return t.ended()
}
