package conform

import (
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/hipgo"
)

func (p *probe) event() (hipgo.Event, error) {
	e, err := p.d.NewEvent(hipgo.EventDisableTiming)
	if err == nil {
		p.mu.Lock()
		p.events = append(p.events, e)
		p.mu.Unlock()
	}
	return e, err
}

// passed waits until the device has passed e's last Record.
func (p *probe) passed(e hipgo.Event) error {
	yes, err := p.poll(p.o.Bound, e.Query)
	if err == nil && !yes {
		err = fmt.Errorf("an event has not come within %v", p.o.Bound)
	}
	return err
}

// landingEvent: once the event behind a copy is ready its bytes are there, and no later ones come.
func landingEvent(p *probe) (string, error) {
	s, err := p.own()
	if err != nil {
		return "", err
	}
	e, err := p.event()
	if err != nil {
		return "", err
	}
	sizes := []int{64, 16384, 16385, 1 << 20}
	for i, n := range sizes {
		src, dst, dev, err := p.trio(n)
		if err != nil {
			return "", err
		}
		fill(src.Bytes(), uint64(i+1))
		if err := p.copy(s, dev.Ptr(), src.Ptr(), n); err != nil {
			return "", err
		}
		if err := p.copy(s, dst.Ptr(), dev.Ptr(), n); err != nil {
			return "", err
		}
		if err := e.Record(s.Stream); err != nil {
			return "", err
		}
		if err := p.passed(e); err != nil {
			return "", fmt.Errorf("copies of %d bytes: %w", n, err)
		}
		if at := mismatch(dst.Bytes(), src.Bytes()); at >= 0 {
			return "", fmt.Errorf("the event behind a copy of %d bytes was ready before byte %d was there", n, at)
		}
		fill(dst.Bytes(), 99)
		fill(src.Bytes(), 99)
		changed := func() (bool, error) { return mismatch(dst.Bytes(), src.Bytes()) >= 0, nil }
		if err := p.never(fmt.Sprintf("bytes of a copy of %d bytes came after its event was ready", n), changed); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("copies of %d bytes were whole when their events were ready, and nothing came later", sizes), nil
}

// landingLate: a copy whose caller gave up still lands, so its memory is not to be used again before that.
func landingLate(p *probe) (string, error) {
	const n = 4096
	s, err := p.own()
	if err != nil {
		return "", err
	}
	e, err := p.event()
	if err != nil {
		return "", err
	}
	gate := p.word()
	src, dst, dev, err := p.trio(n)
	if err != nil {
		return "", err
	}
	fill(src.Bytes(), 7)
	err = errors.Join(
		p.copy(s, dev.Ptr(), src.Ptr(), n),
		p.park(s, gate, 1),
		p.copy(s, dst.Ptr(), dev.Ptr(), n),
		e.Record(s.Stream))
	if err != nil {
		return "", err
	}
	if err := p.never("the event behind a parked copy is ready", e.Query); err != nil {
		return "", err
	}
	again := make([]byte, n)
	fill(again, 8)
	copy(dst.Bytes(), again) // the caller, having given up, uses the memory again
	changed := func() (bool, error) { return mismatch(dst.Bytes(), again) >= 0, nil }
	if err := p.never("a copy landed though the wait before it had not ended", changed); err != nil {
		return "", err
	}
	gate.store(1)
	if err := p.passed(e); err != nil {
		return "", err
	}
	if at := mismatch(dst.Bytes(), src.Bytes()); at >= 0 {
		return "", fmt.Errorf("a released copy has not landed: byte %d is not its own", at)
	}
	return "a copy given up on landed once its stream was released: its memory has to be kept until then", nil
}
