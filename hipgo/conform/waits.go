package conform

import (
	"fmt"

	"github.com/hipfabric/hipfabric/hipgo"
)

// waitCase parks on before and is released by after; upper halves are not looked at by 32-bit waits.
type waitCase struct {
	c             hipgo.Condition
	v, mask       uint64
	before, after uint64
}

const upper = uint64(0xdeadbeef) << 32

// wide spreads a 32-bit pattern over as many bits as a wait looks at.
func wide(bits int, v uint64) uint64 {
	if bits == 64 {
		return v<<32 | v
	}
	return v
}

func waitGte(bits int) func(*probe) (string, error) {
	return waits(bits, false,
		waitCase{hipgo.ConditionGte, wide(bits, 5), allBits, wide(bits, 4), wide(bits, 5)},
		waitCase{hipgo.ConditionGte, wide(bits, 5), allBits, 0, wide(bits, 6)})
}

func waitEq(bits int) func(*probe) (string, error) {
	return waits(bits, false,
		waitCase{hipgo.ConditionEq, wide(bits, 7), allBits, wide(bits, 8), wide(bits, 7)},
		waitCase{hipgo.ConditionEq, wide(bits, 7), allBits, wide(bits, 7) &^ 1, wide(bits, 7)})
}

func waitAnd(bits int) func(*probe) (string, error) {
	return waits(bits, false,
		waitCase{hipgo.ConditionAnd, wide(bits, 6), allBits, wide(bits, 9), wide(bits, 4)},
		waitCase{hipgo.ConditionAnd, wide(bits, 6), allBits, 0, wide(bits, 15)})
}

func waitNor(bits int) func(*probe) (string, error) {
	return waits(bits, false,
		waitCase{hipgo.ConditionNor, ^wide(bits, 0x10), allBits, wide(bits, 0x10), 0},
		waitCase{hipgo.ConditionNor, 0, allBits, allBits, allBits &^ 1})
}

func waitMask(bits int) func(*probe) (string, error) {
	return waits(bits, true,
		waitCase{hipgo.ConditionGte, 0x0500, 0xff00, 0x10400, 0x0500},
		waitCase{hipgo.ConditionEq, 0x70, 0xf0, 0x6f, 0x7f},
		waitCase{hipgo.ConditionAnd, 0xff, 0x0f, 0xf0, 0xf1})
}

// waits runs each case twice: parked and then released by the host, and with the value there before the wait.
func waits(bits int, masked bool, cases ...waitCase) func(*probe) (string, error) {
	return func(p *probe) (string, error) {
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		for _, c := range cases {
			if err := p.oneWait(s, bits, c); err != nil {
				if masked {
					err = fmt.Errorf("with a mask: %w", err)
				}
				return "", fmt.Errorf("a wait until the word %s %#x, mask %#x, %d bits, from %#x to %#x: %w", condition(c.c), c.v, c.mask, bits, c.before, c.after, err)
			}
		}
		return fmt.Sprintf("%d cases held until the host's store, and none when it was there before", len(cases)), nil
	}
}

func (p *probe) oneWait(s stream, bits int, c waitCase) error {
	if bits == 32 {
		c.before, c.after = c.before&(1<<32-1)|upper, c.after&(1<<32-1)|upper
	}
	w, there := p.word(), p.word()
	w.store(c.before)
	if err := p.wait(s, bits, w, c.v, c.c, c.mask); err != nil {
		return err
	}
	if err := p.stays(s); err != nil {
		return err
	}
	w.store(c.after)
	if err := p.drained(s); err != nil {
		return fmt.Errorf("the host's store does not release it: %w", err)
	}
	there.store(c.after)
	if err := p.wait(s, bits, there, c.v, c.c, c.mask); err != nil {
		return err
	}
	if err := p.drained(s); err != nil {
		return fmt.Errorf("it holds though the value is there: %w", err)
	}
	return nil
}

// waitUnsigned tells whether Gte is a comparison of numbers or, as CUDA's, of distances.
func waitUnsigned(bits int) func(*probe) (string, error) {
	return func(p *probe) (string, error) {
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		w := p.word()
		w.store(allBits)
		if err := p.wait(s, bits, w, 5, hipgo.ConditionGte, allBits); err != nil {
			return "", err
		}
		if p.drained(s) == nil {
			return "the greatest number is at least 5", nil
		}
		if err := p.ctx.Err(); err != nil {
			return "", err
		}
		w.store(5)
		if err := p.drained(s); err != nil {
			return "", fmt.Errorf("a wait for at least 5 holds at the greatest number, and at 5: %w", err)
		}
		return "", known(reportCyclic, "at least 5 is not met by the greatest number, but by 5: the comparison is cyclic, so a word may lead by half the range at most")
	}
}

// waitNorMask tells what Nor makes of bits outside the mask, on which the documents are silent.
func waitNorMask(bits int) func(*probe) (string, error) {
	return func(p *probe) (string, error) {
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		w := p.word()
		w.store(0xf0)
		if err := p.wait(s, bits, w, 0x0f, hipgo.ConditionNor, 0xff); err != nil {
			return "", err
		}
		ended, err := p.poll(p.o.Settle, s.Query)
		if err != nil {
			return "", err
		}
		w.store(0)
		if err := p.drained(s); err != nil {
			return "", fmt.Errorf("a Nor wait with a mask is not released by a host store of 0: %w", err)
		}
		if ended {
			return "bits outside the mask count as 0, so that any mask but all ones ends the wait", nil
		}
		return "bits outside the mask are not looked at", nil
	}
}
