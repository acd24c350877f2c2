package conform

import (
	"errors"
	"fmt"
)

func queueMasked(p *probe) (string, error) {
	return p.behindParked(p.masked, "")
}

func queuePriority(p *probe) (string, error) {
	return p.behindParked(func() (stream, error) {
		least, greatest, err := p.d.PriorityRange()
		if err != nil {
			return stream{}, err
		}
		if least == greatest {
			return stream{}, unsupported("stream priorities; there is one, %d", least)
		}
		s, err := p.d.NewStreamPriority(greatest)
		return p.keep(s, err, "high-priority")
	}, reportPriority)
}

func queuePlain(p *probe) (string, error) {
	return p.behindParked(p.plain, reportQueues)
}

// behindParked parks many plain streams and asks whether copies on one more, made before, still run.
func (p *probe) behindParked(open func() (stream, error), report string) (string, error) {
	s, err := open()
	if err != nil {
		return "", err
	}
	e, err := p.event()
	if err != nil {
		return "", err
	}
	gate := p.word()
	var all []stream
	for range p.o.Parked {
		one, err := p.plain()
		if err != nil {
			return "", err
		}
		all = append(all, one)
	}
	for _, one := range all {
		if err := p.park(one, gate, 1); err != nil {
			return "", err
		}
	}
	if err := p.stays(all[0]); err != nil {
		return "", err
	}
	sizes := []int{64, 65536}
	for _, n := range sizes {
		src, dst, dev, err := p.trio(n)
		if err != nil {
			return "", err
		}
		fill(src.Bytes(), uint64(n))
		err = errors.Join(p.copy(s, dev.Ptr(), src.Ptr(), n), p.copy(s, dst.Ptr(), dev.Ptr(), n), e.Record(s.Stream))
		if err != nil {
			return "", err
		}
		moved, err := p.poll(p.o.Bound, e.Query)
		if err != nil {
			return "", err
		}
		if !moved {
			gate.store(1)
			stuck := fmt.Sprintf("with %d plain streams parked, copies of %d bytes on %s stood still for %v", p.o.Parked, n, s.name, p.o.Bound)
			if err := p.passed(e); err != nil {
				return "", fmt.Errorf("%s, and went on standing once a host store had released those: %w", stuck, err)
			}
			if report == "" {
				return "", errors.New(stuck)
			}
			return "", known(report, "%s", stuck)
		}
		if at := mismatch(dst.Bytes(), src.Bytes()); at >= 0 {
			return "", fmt.Errorf("the event behind copies of %d bytes on %s was ready before byte %d was there", n, s.name, at)
		}
	}
	gate.store(1)
	return fmt.Sprintf("with %d plain streams parked, copies of %d bytes on %s ran", p.o.Parked, sizes, s.name), nil
}

// createWhileParked: streams, events and memory can be had while another stream waits. hipfabric makes them at open.
func createWhileParked(p *probe) (string, error) {
	a, err := p.plain()
	if err != nil {
		return "", err
	}
	gate := p.word()
	if err := p.park(a, gate, 1); err != nil {
		return "", err
	}
	made := make(chan error, 1)
	go func() {
		_, e1 := p.plain()
		_, e2 := p.own()
		_, e3 := p.event()
		_, e4 := p.hostBytes(4096)
		_, e5 := p.deviceBytes(4096)
		made <- errors.Join(e1, e2, e3, e4, e5)
	}()
	back := func() (bool, error) { return len(made) == 1, nil }
	there, err := p.poll(p.o.Bound, back)
	if err == nil && there {
		err = p.stays(a)
	}
	gate.store(1)
	if err == nil && there {
		return "streams, an event and memory were made while another stream was parked", <-made
	}
	late, lateErr := p.poll(p.o.Bound, back)
	switch {
	case err != nil:
		return "", err
	case lateErr != nil:
		return "", lateErr
	case !late:
		return "", errors.New("making streams, an event and memory while another stream was parked never came back")
	}
	return "", errors.Join(known(reportCreate, "making streams, an event and memory waited %v for a parked stream, until a host store released it", p.o.Bound), <-made)
}
