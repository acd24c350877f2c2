package conform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/hipfabric/hipfabric/hipgo"
)

// hipHostMalloc's flags.
const (
	hostPortable    = 1
	hostMapped      = 2
	hostNonCoherent = 0x80000000
)

// hipStreamWriteValue64's flags, of late HIP 7.
const (
	writeIncrement = 0x1000
	writeDecrement = 0x1001
	writeNothing   = 0x4000 // no such flag
)

const codeInvalidValue = 1

// writeFlags: what a runtime makes of flags that it may not know. It must not take a write and do nothing.
func writeFlags(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	var seen []string
	for _, flag := range []uint32{writeIncrement, writeDecrement, writeNothing} {
		w := p.word()
		w.store(100)
		code := p.calls.writeFlags(s.Stream, w.addr(), 7, flag)
		if code != 0 {
			seen = append(seen, fmt.Sprintf("%#x refused (code %d)", flag, code))
			continue
		}
		if err := p.drained(s); err != nil {
			return "", err
		}
		changed, err := p.poll(p.o.Settle, func() (bool, error) { return w.load() != 100, nil })
		if err != nil {
			return "", err
		}
		if !changed {
			return "", fmt.Errorf("a write with flag %#x was taken and did nothing", flag)
		}
		seen = append(seen, fmt.Sprintf("%#x makes 100 and 7 %d", flag, int64(w.load())))
	}
	return "flags " + strings.Join(seen, ", "), nil
}

// noncoherentHost: host memory without Coherent may show stale bytes until the stream has ended, and no longer.
func noncoherentHost(p *probe) (string, error) {
	s, err := p.plain()
	if err != nil {
		return "", err
	}
	var seen []string
	for _, kind := range []struct {
		name  string
		flags uint32
	}{{"NonCoherent", hostMapped | hostNonCoherent}, {"Portable alone", hostPortable}} {
		host, ptr, err := p.foreignHost(kind.flags)
		if err != nil {
			return "", fmt.Errorf("%s: %w", kind.name, err)
		}
		at, err := p.staleness(s, host, ptr)
		if err != nil {
			return "", fmt.Errorf("%s: %w", kind.name, err)
		}
		seen = append(seen, kind.name+" "+at)
	}
	return "host memory " + strings.Join(seen, ", "), nil
}

func (p *probe) foreignHost(flags uint32) ([]byte, uintptr, error) {
	t, n := p.d.Runtime().Table(), 4096
	host, ptr, code := t.HostMallocFlags(p.d.Ordinal(), n, flags)
	switch code {
	case 0:
	case codeInvalidValue:
		return nil, 0, unsupported("host memory with flags %#x (code %d)", flags, code)
	default:
		return nil, 0, &hipgo.Error{Call: "hipHostMalloc", Code: code, Library: p.d.Runtime().Library()}
	}
	p.closeLater(closer(func() error {
		if code := t.HostFree(p.d.Ordinal(), host); code != 0 {
			return &hipgo.Error{Call: "hipHostFree", Code: code, Library: p.d.Runtime().Library()}
		}
		return nil
	}))
	return host, ptr, nil
}

// staleness has the device write a word in host memory, and looks for it before and after the stream has ended.
func (p *probe) staleness(s stream, host []byte, ptr uintptr) (string, error) {
	const v = 0x1122334455667788
	told, gate := p.word(), p.word()
	clear(host)
	there := func() (bool, error) { return binary.NativeEndian.Uint64(host) == v, nil }
	err := errors.Join(
		p.write(s, told, 1), p.calls.write(s.Stream, 64, ptr, v), p.park(s, gate, 1), p.reaches(told, 1))
	if err != nil {
		return "", err
	}
	early, err := p.poll(p.o.Settle, there)
	if err != nil {
		return "", err
	}
	gate.store(1)
	if err := p.drained(s); err != nil {
		return "", err
	}
	if ended, _ := there(); !ended {
		return "", errors.New("a word is stale though the stream that wrote it has ended")
	}
	if early {
		return "shows a word while its stream goes on", nil
	}
	return "does not show a word before its stream has ended", nil
}

type closer func() error

func (c closer) Close() error { return c() }
