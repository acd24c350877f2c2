package conform

import (
	"errors"
	"fmt"
	"time"
)

// writeWidth: a write touches its own 32 or 64 bits and no others.
func writeWidth(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	for _, bits := range []int{32, 64} {
		w := p.word()
		beside := word{w.words, w.index + 1}
		w.store(upper | 1)
		beside.store(upper)
		if err := p.calls.write(s.Stream, bits, w.addr(), 0x1122334455667788); err != nil {
			return "", err
		}
		want := uint64(0x1122334455667788)
		if bits == 32 {
			want = upper | 0x55667788
		}
		if err := p.reaches(w, want); err != nil {
			return "", fmt.Errorf("write of %d bits: %w", bits, err)
		}
		if err := p.drained(s); err != nil {
			return "", err
		}
		if beside.load() != upper {
			return "", fmt.Errorf("write of %d bits changed the bytes behind it to %#x", bits, beside.load())
		}
	}
	return "32 and 64 bits were written, and nothing beside them", nil
}

// writeWait: the pair that the words gate queues for each call.
func writeWait(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	ready, done := p.word(), p.word()
	const rounds = 32
	for i := uint64(1); i <= rounds; i++ {
		p.remember(s, done, fmt.Sprintf("is at least %d", i), i)
		if err := p.calls.writeWait(s.Stream, ready.addr(), i, done.addr(), i); err != nil {
			return "", err
		}
	}
	for i := uint64(1); i <= rounds; i++ {
		if err := p.reaches(ready, i); err != nil {
			return "", err
		}
		done.store(i)
	}
	if err := p.drained(s); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d pairs queued at once: each write after the wait before it, each wait ended by the host", rounds), nil
}

// releaseHostStore also measures how long a store takes to release a stream.
func releaseHostStore(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	gate, seen := p.word(), p.word()
	best := time.Duration(1 << 62)
	for i := uint64(1); i <= 20; i++ {
		if err := p.park(s, gate, i); err != nil {
			return "", err
		}
		if err := p.write(s, seen, i); err != nil {
			return "", err
		}
		if i == 1 {
			if err := p.stays(s); err != nil {
				return "", err
			}
		}
		began := time.Now()
		gate.store(i)
		for seen.load() != i {
			if time.Since(began) > p.o.Bound {
				return "", fmt.Errorf("a host store has not released its stream within %v", p.o.Bound)
			}
		}
		best = min(best, time.Since(began))
		if err := p.drained(s); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("host store to a stream's write seen by the host: %v at best of 20", best.Round(100*time.Nanosecond)), nil
}

// releaseStreamWrite: whether a write on one stream ends a wait on another. hipfabric does not need it.
func releaseStreamWrite(p *probe) (string, error) {
	a, err := p.plain()
	if err != nil {
		return "", err
	}
	b, err := p.masked() // a queue of its own, or its write could stand behind the wait that it is to end
	apart := err == nil
	if errors.Is(err, errors.ErrUnsupported) {
		b, err = p.plain()
	}
	if err != nil {
		return "", err
	}
	w := p.word()
	if err := p.park(a, w, 1); err != nil {
		return "", err
	}
	if err := p.stays(a); err != nil {
		return "", err
	}
	if err := p.write(b, w, 1); err != nil {
		return "", err
	}
	if err := p.reaches(w, 1); err != nil {
		if !apart {
			return "", unsupported("two streams that surely do not share a hardware queue (no hipExtStreamCreateWithCUMask); the write stood behind the wait")
		}
		return "", fmt.Errorf("a write on a stream with a queue of its own did not run while another stream was parked: %w", err)
	}
	if p.drained(a) == nil {
		return "a write on one stream ended a wait on another", nil
	}
	if err := p.ctx.Err(); err != nil {
		return "", err
	}
	w.store(2)
	if err := p.drained(a); err != nil {
		return "", fmt.Errorf("neither another stream's write nor a host store ended a wait: %w", err)
	}
	return "", known(reportStreamWrite, "the host saw another stream's write within %v, the waiting stream did not; a host store ended its wait", p.o.Bound)
}
