package conform

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/hipgo"
)

func selfTest(p *probe) (string, error) {
	err := p.d.SelfTest(p.ctx)
	if can, attribute := p.d.Attribute(hipgo.AttributeStreamWaitValue); err != nil && attribute == nil && can != 0 {
		return "", errors.New("the device says that it can, and: " + err.Error()) // a failure, and no lack
	}
	if err != nil {
		return "", err
	}
	return "a wait held its stream until a host store, and a write was seen", nil
}

// order: copies in and out through one device block, and a write after each pair, behind one wait.
func order(p *probe) (string, error) {
	const rounds, block = 48, 64
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	gate, count := p.word(), p.word()
	src, err := p.hostBytes(rounds * block)
	if err != nil {
		return "", err
	}
	dst, err := p.hostBytes(rounds * block)
	if err != nil {
		return "", err
	}
	dev, err := p.deviceBytes(block)
	if err != nil {
		return "", err
	}
	fill(src.Bytes(), 1)
	if err := p.park(s, gate, 1); err != nil {
		return "", err
	}
	for i := range rounds {
		at := uintptr(i * block)
		if err := p.copy(s, dev.Ptr(), src.Ptr()+at, block); err != nil {
			return "", err
		}
		if err := p.copy(s, dst.Ptr()+at, dev.Ptr(), block); err != nil {
			return "", err
		}
		if err := p.write(s, count, uint64(i+1)); err != nil {
			return "", err
		}
	}
	if err := p.stays(s); err != nil {
		return "", err
	}
	if count.load() != 0 || !bytes.Equal(dst.Bytes(), make([]byte, rounds*block)) {
		return "", fmt.Errorf("operations behind a wait ran before it had ended: %d writes are there", count.load())
	}
	gate.store(1)
	last := uint64(0)
	done, err := p.poll(p.o.Bound, func() (bool, error) {
		n := count.load()
		if n < last || n > rounds {
			return false, fmt.Errorf("write %d was seen after write %d", n, last)
		}
		last = n
		if i := mismatch(dst.Bytes()[:n*block], src.Bytes()[:n*block]); i >= 0 {
			return false, fmt.Errorf("write %d was seen before the bytes of copy %d", n, i/block+1)
		}
		return n == rounds, nil
	})
	if err == nil && !done {
		err = fmt.Errorf("only %d of %d writes ran within %v", last, rounds, p.o.Bound)
	}
	if err != nil {
		return "", err
	}
	if err := p.drained(s); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d copies and %d writes behind a wait ran in the order queued, each write after its copy's bytes", 2*rounds, rounds), nil
}

// fill makes bytes that differ from block to block and from seed to seed.
func fill(b []byte, seed uint64) {
	x := seed*0x9E3779B97F4A7C15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
}

// mismatch is the first place where a and b differ, or -1.
func mismatch(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
