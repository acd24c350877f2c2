package conform

import (
	"fmt"
)

// acquireCopy: bytes that the host wrote before it released a wait, read by a copy queued behind that wait long before.
func acquireCopy(n int) func(*probe) (string, error) {
	return func(p *probe) (string, error) {
		const rounds = 24
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		gate := p.word()
		src, dst, dev, err := p.trio(n)
		if err != nil {
			return "", err
		}
		for i := uint64(1); i <= rounds; i++ {
			fill(src.Bytes(), 1000+i) // what a device that prefetched would copy
			if err := p.park(s, gate, i); err != nil {
				return "", err
			}
			if err := p.copy(s, dev.Ptr(), src.Ptr(), n); err != nil {
				return "", err
			}
			if err := p.copy(s, dst.Ptr(), dev.Ptr(), n); err != nil {
				return "", err
			}
			if i == 1 {
				if err := p.stays(s); err != nil {
					return "", err
				}
			}
			fill(src.Bytes(), i)
			gate.store(i)
			if err := p.drained(s); err != nil {
				return "", err
			}
			if at := mismatch(dst.Bytes(), src.Bytes()); at >= 0 {
				return "", fmt.Errorf("round %d of %d: byte %d of %d, stored before the wait ended, was not what the copy behind it read", i, rounds, at, n)
			}
		}
		return fmt.Sprintf("%d copies of %d bytes behind a wait read what the host had stored before it ended the wait", rounds, n), nil
	}
}

// coherentHost: a host sees a device's bytes in pinned memory by a word alone, while the stream goes on.
func coherentHost(p *probe) (string, error) {
	const n, rounds = 4096, 24
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	told, gate := p.word(), p.word()
	src, dst, dev, err := p.trio(n)
	if err != nil {
		return "", err
	}
	for i := uint64(1); i <= rounds; i++ {
		fill(src.Bytes(), i)
		if err := p.copy(s, dev.Ptr(), src.Ptr(), n); err != nil {
			return "", err
		}
		if err := p.copy(s, dst.Ptr(), dev.Ptr(), n); err != nil {
			return "", err
		}
		if err := p.write(s, told, i); err != nil {
			return "", err
		}
		if err := p.park(s, gate, i); err != nil {
			return "", err
		}
		if err := p.reaches(told, i); err != nil {
			return "", err
		}
		if at := mismatch(dst.Bytes(), src.Bytes()); at >= 0 {
			return "", fmt.Errorf("round %d of %d: the word was there before byte %d of the copy queued before it", i, rounds, at)
		}
		gate.store(i)
	}
	return fmt.Sprintf("%d times a write was seen, its stream still parked, and the %d bytes copied before it were there", rounds, n), p.drained(s)
}

// trio is pinned memory to copy from, pinned memory to copy to, and device memory between them.
func (p *probe) trio(n int) (src, dst pinned, dev onDevice, err error) {
	if src, err = p.hostBytes(n); err != nil {
		return src, dst, dev, err
	}
	if dst, err = p.hostBytes(n); err != nil {
		return src, dst, dev, err
	}
	dev, err = p.deviceBytes(n)
	return src, dst, dev, err
}
