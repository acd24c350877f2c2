package hipgo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	selfTestWithin = 5 * time.Second        // when ctx has no deadline that is nearer
	selfTestHeld   = 2 * time.Millisecond   // how long a wait must hold, to be one
	selfTestGrace  = 500 * time.Millisecond // for a stream to run dry after a failure, before it is left behind

	releases = 1 << 62 // lets a wait for a small value through by size, as HIP compares, and by sign, as CUDA does
)

// SelfTest proves what the staged path stands on, since the runtime's attribute proves nothing: a wait on a word in pinned
// memory is queued and holds its stream, a store of the CPU releases it, and a queued write is seen by the CPU. It returns
// within ctx, or 5 s, even when a driver call blocks. Errors: *UnsupportedError, which names the device, its PCI id, the
// HIP version and the library; ctx's where it was cancelled.
func (d *Device) SelfTest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, selfTestWithin)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.selfTest(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	blocked := time.NewTimer(3 * selfTestGrace)
	defer blocked.Stop()
	select {
	case err := <-ended:
		return err
	case <-blocked.C:
		return d.unfit(ctx, "a call of its driver does not return", ctx.Err())
	}
}

func (d *Device) selfTest(ctx context.Context) error {
	if v, err := d.Attribute(AttributeStreamWaitValue); err != nil || v == 0 {
		return d.unfit(ctx, "it says that streams cannot wait on values ("+AttributeStreamWaitValue.String()+" is 0)", err)
	}
	if v, err := d.Attribute(AttributeCanMapHostMemory); err != nil || v == 0 {
		return d.unfit(ctx, "it cannot map host memory ("+AttributeCanMapHostMemory.String()+" is 0)", err)
	}
	mem, err := d.HostMalloc(4096)
	if err != nil {
		return d.unfit(ctx, "no pinned memory", err)
	}
	s, err := d.NewStream(StreamNonBlocking)
	if err != nil {
		return errors.Join(d.unfit(ctx, "no stream", err), mem.Close())
	}
	err = d.exercise(ctx, s, mem.Words())
	mem.Words().Store(0, releases) // whatever happened, nothing stays parked
	if err == nil {
		return errors.Join(s.Close(), mem.Close())
	}
	rest, cancel := context.WithTimeout(context.Background(), selfTestGrace)
	defer cancel()
	if s.Synchronize(rest) != nil {
		return fmt.Errorf("%w; its stream and 4096 pinned bytes are left behind, since the device may yet use them", err)
	}
	return errors.Join(err, s.Close(), mem.Close())
}

func (d *Device) exercise(ctx context.Context, s Stream, w Words) error {
	const release, written = 0, 1
	if err := s.WaitValue64(w.Addr(release), 1, ConditionGte, ^uint64(0)); err != nil {
		return d.unfit(ctx, "a wait on a word in pinned memory was refused", err)
	}
	held, cancel := context.WithTimeout(ctx, selfTestHeld)
	defer cancel()
	if err := s.Synchronize(held); !errors.Is(err, context.DeadlineExceeded) {
		return d.unfit(ctx, "a stream did not wait for the word that it was told to wait for", err)
	}
	w.Store(release, 1)
	if err := s.Synchronize(ctx); err != nil {
		return d.unfit(ctx, "a store of the CPU did not release a waiting stream", err)
	}
	const mark = 0x600d_f00d_cafe
	if err := s.WriteValue64(w.Addr(written), mark); err != nil {
		return d.unfit(ctx, "a write of a word in pinned memory was refused", err)
	}
	if err := s.Synchronize(ctx); err != nil {
		return d.unfit(ctx, "a write of a word did not end", err)
	}
	if got := w.Load(written); got != mark {
		return d.unfit(ctx, fmt.Sprintf("a word that the stream wrote reads %#x where %#x was due", got, uint64(mark)), nil)
	}
	return nil
}

// unfit refuses the device, unless it was the caller who gave up.
func (d *Device) unfit(ctx context.Context, why string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("hipgo: self-test of %s: %w", d, ctx.Err())
	}
	refusal := &UnsupportedError{Device: d.String(), Feature: "self-test: " + why}
	if err != nil {
		return fmt.Errorf("%w: %w", refusal, err)
	}
	return refusal
}
