package roce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// dryWithin is how long kernels may take to end once they are told to.
const dryWithin = 2 * time.Second

// Sync returns once s has passed everything queued so far: nil; or the group's *Cause, once no call of s touches a buffer, or once seconds
// have passed, which makes it ErrDevice; or ctx's error, which leaves the group alone.
func (m *Mailbox) Sync(ctx context.Context, s fabric.Stream) error {
	m.inside.Add(1)
	defer m.leave()
	upTo := m.used.Laid()
	err := m.rest.Sync(ctx, s)
	if m.world == 1 {
		return m.passedOn(err)
	}
	if err == nil {
		m.look() // a kernel that gave up has let its stream pass
	}
	var cause *fabric.Cause
	switch {
	case err == nil && m.failed.Load() == nil:
		m.used.Passed(uintptr(s), upTo)
		return nil
	case err == nil:
		return m.ended()
	case errors.As(err, &cause):
		m.fail(cause)
	case m.failed.Load() == nil || ctx.Err() != nil:
		return err
	}
	if err := m.dry(ctx, uintptr(s)); err != nil {
		return err
	}
	if cause != nil && errors.Is(cause.Kind, fabric.ErrDevice) {
		return cause
	}
	return m.ended()
}

func (m *Mailbox) passedOn(err error) error {
	if err == nil {
		return nil
	}
	return m.along(err)
}

// dry waits until a stream of a failed group has run dry of kernels, which end at once: nil, also where they do not, which the group's
// cause then tells; or ctx's error.
func (m *Mailbox) dry(ctx context.Context, stream uintptr) error {
	late := time.NewTimer(dryWithin)
	defer late.Stop()
	select {
	case m.waits <- struct{}{}:
		defer func() { <-m.waits }()
	case <-late.C:
		return m.notDry(stream)
	case <-ctx.Done():
		return ctx.Err()
	}
	if captures, err := m.gpu.Capturing(stream); err != nil || captures {
		return nil // none of ours, or nothing of it runs
	}
	if err := m.gpu.Record(stream, m.event); err != nil {
		if wrong(err) {
			return nil
		}
		return m.notDry(stream)
	}
	look := time.NewTicker(restLeast)
	defer look.Stop()
	for {
		if done, err := m.gpu.Query(m.event); err != nil {
			return m.notDry(stream)
		} else if done {
			return nil
		}
		select {
		case <-look.C:
		case <-late.C:
			return m.notDry(stream)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notDry is for a stream whose kernels may still run, as far as anybody knows.
func (m *Mailbox) notDry(stream uintptr) error {
	text := fmt.Sprintf("rank %d: stream %#x on %v has not passed the mailbox's kernels since the failure, and they may still touch their buffers", m.rank, stream, m.gpu)
	m.broken.CompareAndSwap(nil, m.deviceCause(text, nil))
	return nil
}
