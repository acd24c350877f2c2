package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	pathStall = 2 * time.Second // without a byte, while another path has brought what this one owes
	maxBehind = 1 << 20         // bytes kept for a path alone: the other end has them already

	pathFrame = frameHeader + 8 + frameMAC
)

var (
	errStalled = errors.New("nothing came by it while another way brought more")
	errBehind  = errors.New("it takes the bytes more slowly than another way")
	errNewer   = errors.New("the other end has dialled it anew")
)

// path is one socket of a link: a raw non-blocking one, on one rail.
type path struct {
	fd         int // -1 once closed
	rail       int
	generation uint16
	ready      bool // set by the poller

	in      *seal     // of the frame that comes first on a further path; nil once it is here
	first   []byte    // what is here of it
	head    []byte    // this end's own one, as far as it is not written
	at      uint64    // place in the stream of the next byte to read: never beyond what the link has taken
	written uint64    // place of the next byte to write
	moved   bool      // bytes came since the last look
	behind  time.Time // since when it has owed what another has brought, and stood still; zero when it does not
	shut    bool      // nothing more is written
}

// add takes a further path, which begins with what the other end may not have.
func (l *link) add(p *path, out *seal) {
	var w writer
	w.u64(l.acked)
	p.written, p.head = l.acked, out.append(nil, framePath, w)
	l.paths = append(l.paths, p)
}

// begin takes from b what belongs to the frame that comes first, and gives the rest: bytes of the stream.
func (p *path) begin(b []byte, taken uint64) ([]byte, error) {
	if p.in == nil {
		return b, nil
	}
	n := min(len(b), pathFrame-len(p.first))
	if p.first, b = append(p.first, b[:n]...), b[n:]; len(p.first) < pathFrame {
		return nil, nil
	}
	t, payload, size, err := p.in.open(p.first)
	if err != nil {
		return nil, err
	}
	if t != framePath || size != pathFrame {
		return nil, fmt.Errorf("%w: a path does not say where it begins", errFrame)
	}
	r := reader{b: payload}
	if p.at = r.u64(); p.at > taken {
		return nil, fmt.Errorf("%w: a path begins at byte %d; %d have come", errFrame, p.at, taken)
	}
	p.in, p.first = nil, nil
	return b, nil
}

// stands says since when the path has owed bytes that another has brought.
func (l *link) stands(p *path, now time.Time) time.Time {
	if p.moved {
		p.moved, p.behind = false, time.Time{}
	}
	if p.behind.IsZero() && (p.in != nil || p.at < l.taken) {
		p.behind = now
	}
	return p.behind
}

// useless says why a path is better closed while there are others: nil when it is not.
func (l *link) useless(p *path, now time.Time) error {
	switch since := l.stands(p, now); {
	case len(l.paths) < 2:
		return nil
	case !since.IsZero() && now.Sub(since) >= pathStall:
		return errStalled
	case p.written+maxBehind < l.acked:
		return errBehind
	}
	return nil
}

func (l *link) remove(p *path) {
	if i := slices.Index(l.paths, p); i >= 0 {
		l.paths = slices.Delete(l.paths, i, i+1)
	}
	p.close()
}

func (p *path) close() {
	if p.fd >= 0 {
		closeFD(p.fd)
		p.fd = -1
	}
}
