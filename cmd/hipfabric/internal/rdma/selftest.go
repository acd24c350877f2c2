package rdma

import (
	"context"
	"errors"
	"time"

	"github.com/hipfabric/hipfabric/verbs"
)

const selfTime = 10 * time.Second // of one port

// try has each port that a group could use write to itself: a queue pair, its memory and its address then work.
func (s *System) try(ctx context.Context, h *Host) {
	lib, err := s.Load()
	if err != nil {
		return
	}
	for i := range h.Devices {
		d := &h.Devices[i]
		for j := range d.Ports {
			if p := &d.Ports[j]; d.Listed && d.Failed == "" && !d.Foreign && p.Usable() && ctx.Err() == nil {
				p.SelfTest = selfTest(ctx, lib, d.Name, p)
				before := p.Counters
				p.Counters = s.counters(d.Name, p.Number) // a peer's trial counts from here
				p.SelfTest.Changes = grown(before, p.Counters)
			}
		}
	}
}

func selfTest(ctx context.Context, lib *verbs.Library, device string, p *Port) *SelfTest {
	ctx, cancel := within(ctx, selfTime, "the port's writes to itself")
	defer cancel()
	t := &SelfTest{}
	err := func() error {
		a, err := newEnd(lib, device, p.Number, p.Chosen)
		if err != nil {
			return err
		}
		defer a.close()
		b, err := newEnd(lib, device, p.Number, p.Chosen)
		if err != nil {
			return err
		}
		defer b.close()
		if err := b.connect(a.door(), 0); err != nil {
			return err
		}
		if err := a.connect(b.door(), 0); err != nil {
			return err
		}
		type answered struct {
			wrong int
			err   error
		}
		for _, kind := range []struct{ bytes, count int }{{largeBytes, largeTrips}, {smallBytes, smallTrips}} {
			ended := make(chan answered, 1)
			go func() {
				wrong, err := b.pong(ctx, kind.bytes, kind.count)
				ended <- answered{wrong, err}
			}()
			trips, err := a.ping(ctx, kind.bytes, kind.count)
			other := <-ended
			trips.Wrong += other.wrong + t.Wrong
			t.Trips = trips // the small ones, whose time is of interest, are the last
			if err := telling(err, other.err); err != nil {
				return err
			}
		}
		return nil
	}()
	if err != nil {
		t.Failed, t.Cause = err.Error(), cause(err)
	}
	return t
}

// telling is the one of two ends' errors that says why: that one waited in vain follows from the other.
func telling(a, b error) error {
	if a == nil || b != nil && errors.Is(a, context.DeadlineExceeded) {
		return b
	}
	return a
}
