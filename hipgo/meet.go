package hipgo

import (
	"errors"
	"sync"
	"sync/atomic"
)

// acquaintance remembers which streams are the device's. A handle that HIP gives again, to a stream of another device, is taken for
// the old one: to ask each time would cost as much as the call itself.
type acquaintance struct {
	last atomic.Uintptr // the null stream to begin with, which is the device's
	mu   sync.Mutex
	all  map[uintptr]struct{}
}

// mostMet bounds what is remembered of an engine that makes streams without end.
const mostMet = 1024

// meet refuses a stream of another device, on which HIP may queue a write and a wait without a word. An event of this device cannot
// be recorded there, on any HIP.
func (s *Seam) meet(stream uintptr) error {
	a := &s.met
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.all[stream]; !ok {
		if captures, err := s.Capturing(stream); err != nil || captures {
			return err // an event would be part of the engine's graph
		}
		mark, err := s.d.NewEvent(EventDisableTiming)
		if err != nil {
			return err
		}
		if err := errors.Join(s.Record(stream, mark.raw), mark.Close()); err != nil {
			return err
		}
		if a.all == nil || len(a.all) == mostMet {
			a.all = map[uintptr]struct{}{}
		}
		a.all[stream] = struct{}{}
	}
	a.last.Store(stream)
	return nil
}

// forget has a stream met anew: a call on it has failed, so it may be no more.
func (s *Seam) forget(stream uintptr) {
	s.met.mu.Lock()
	defer s.met.mu.Unlock()
	delete(s.met.all, stream)
	s.met.last.CompareAndSwap(stream, 0)
}
