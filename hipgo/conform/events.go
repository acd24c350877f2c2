package conform

import (
	"errors"
	"fmt"
)

func eventNeverRecorded(p *probe) (string, error) {
	e, err := p.event()
	if err != nil {
		return "", err
	}
	ready, err := e.Query()
	if err == nil && !ready {
		err = errors.New("an event that was never recorded is not ready: who polls it waits for ever")
	}
	return "an event that was never recorded is ready", err
}

// eventNotReady: an event behind a wait becomes ready when the wait ends, and again after it is recorded anew.
func eventNotReady(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	e, err := p.event()
	if err != nil {
		return "", err
	}
	gate := p.word()
	for i := uint64(1); i <= 3; i++ {
		if err := errors.Join(p.park(s, gate, i), e.Record(s.Stream)); err != nil {
			return "", err
		}
		if err := p.never(fmt.Sprintf("record %d behind a parked wait is ready", i), e.Query); err != nil {
			return "", err
		}
		gate.store(i)
		if err := p.passed(e); err != nil {
			return "", err
		}
	}
	return "an event behind a wait was ready once the wait had ended, three times over", p.drained(s)
}

// eventStreamWait: a stream waits for another's event, also when that was recorded behind a wait.
func eventStreamWait(p *probe) (string, error) {
	a, err := p.plain()
	if err != nil {
		return "", err
	}
	b, err := p.own()
	if err != nil {
		return "", err
	}
	e, err := p.event()
	if err != nil {
		return "", err
	}
	gate, first, second := p.word(), p.word(), p.word()
	err = errors.Join(
		p.park(a, gate, 1), p.write(a, first, 1), e.Record(a.Stream),
		b.WaitEvent(e), p.write(b, second, 1))
	if err != nil {
		return "", err
	}
	if err := p.stays(b); err != nil {
		return "", err
	}
	gate.store(1)
	if err := p.reaches(second, 1); err != nil {
		return "", err
	}
	if first.load() != 1 {
		return "", errors.New("a stream ran past an event before what the other stream did ahead of it was seen")
	}
	return "a stream held until another's event, which stood behind a wait", errors.Join(p.drained(a), p.drained(b))
}
