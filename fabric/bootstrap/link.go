package bootstrap

import "fmt"

const (
	readChunk = 64 << 10
	maxPass   = 4 << 20 // bytes read from one path before the others' turn
	takenStep = 64 << 10
	// maxUntaken bounds what is kept for a rank that takes bytes and never says so; what is on its way to one that does
	// stays far below, since messages wait for credit.
	maxUntaken = 64 << 20
)

// link is the control connection to one rank as the loop drives it: frames in, frames out. Both directions are streams of
// sealed bytes; each of the link's paths carries all of them.
type link struct {
	peer    int
	in, out *seal
	several bool    // more than one rail leads there: what is sent is kept until the other end has taken it
	paths   []*path // the live ones

	inbuf []byte
	taken uint64 // place in the stream of the next byte to take
	told  uint64 // what the other end has been told of that

	queue []frame // not sealed yet
	wire  []byte  // sealed; its first byte has the place base
	base  uint64
	acked uint64 // the other end has taken what comes before

	left bool // the other end has said goodbye
	bye  bool // this end has: nothing more is queued
	shut bool // and nothing more is written
}

// frame is queued by reference: a payload that goes to many links is one slice.
type frame struct {
	kind    frameType
	payload []byte
}

func newLink(peer, fd int, in, out *seal) *link {
	return &link{peer: peer, in: in, out: out, paths: []*path{{fd: fd}}}
}

func (l *link) alive() bool { return len(l.paths) > 0 }

func (l *link) send(kind frameType, payload []byte) {
	if l.alive() && !l.left && !l.bye {
		l.queue = append(l.queue, frame{kind, payload})
	}
}

// end is the place in the stream behind the last sealed byte.
func (l *link) end() uint64 { return l.base + uint64(len(l.wire)) }

// unsent says whether no path has written all that there is.
func (l *link) unsent() bool {
	for _, p := range l.paths {
		if !l.unsentBy(p) {
			return false
		}
	}
	return l.alive()
}

func (l *link) unsentBy(p *path) bool {
	return len(l.queue) > 0 || len(p.head) > 0 || p.written < l.end()
}

// write writes what a path's socket takes.
func (l *link) write(p *path) error {
	for p.fd >= 0 && l.unsentBy(p) {
		b := p.head
		if len(b) == 0 {
			if p.written == l.end() {
				l.trim()
				l.fill()
			}
			b = l.wire[p.written-l.base:]
		}
		n, err := writeFD(p.fd, b)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if len(p.head) > 0 {
			p.head = p.head[n:]
		} else {
			p.written += uint64(n)
		}
	}
	return nil
}

// fill seals queued frames, about a chunk of them.
func (l *link) fill() {
	n, full := 0, len(l.wire)+readChunk
	for n < len(l.queue) && (n == 0 || len(l.wire) < full) {
		l.wire = l.out.append(l.wire, l.queue[n].kind, l.queue[n].payload)
		l.queue[n] = frame{}
		n++
	}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
}

// trim lets go of what every path has written and, where a path may come that has to begin with it, the other end has taken.
func (l *link) trim() {
	from := l.end()
	if l.several {
		from = l.acked
	}
	for _, p := range l.paths {
		from = min(from, p.written)
	}
	n := int(from - l.base)
	switch {
	case n == len(l.wire) && cap(l.wire) > maxPass:
		l.wire = nil
	case n == len(l.wire):
		l.wire = l.wire[:0]
	case n < len(l.wire)-n:
		return // moving the rest pays once it is the smaller part
	default:
		l.wire = l.wire[:copy(l.wire, l.wire[n:])]
	}
	l.base = from
}

// read takes what a path's socket has and hands over each whole frame. any says that at least one byte came; ended, such
// as io.EOF, is why the path is over, err why the link is. Frames that came before are handed over first.
func (l *link) read(p *path, scratch []byte, handle func(frameType, []byte) error) (any bool, ended, err error) {
	for total := 0; total < maxPass && p.fd >= 0; {
		n, err := readFD(p.fd, scratch)
		if n == 0 || err != nil {
			return any, err, nil
		}
		any, total, p.moved = true, total+n, true
		b, err := p.begin(scratch[:n], l.taken)
		if err != nil {
			return any, err, nil
		}
		if l.take(p, b) {
			if err := l.frames(handle); err != nil {
				return any, nil, err
			}
		}
		if n < len(scratch) {
			// A short read has emptied the socket; what comes next wakes the poller.
			return any, nil, nil
		}
	}
	return any, nil, nil
}

// take keeps what no other path has brought before.
func (l *link) take(p *path, b []byte) (grown bool) {
	p.at += uint64(len(b))
	if p.at <= l.taken {
		return false
	}
	l.inbuf = append(l.inbuf, b[len(b)-int(p.at-l.taken):]...)
	l.taken = p.at
	return true
}

func (l *link) frames(handle func(frameType, []byte) error) error {
	b := l.inbuf
	for {
		kind, payload, size, err := l.in.open(b)
		if err != nil {
			return err
		}
		if size == 0 {
			break
		}
		if err := handle(kind, payload); err != nil {
			return err
		}
		b = b[size:]
	}
	if len(b) == 0 && cap(l.inbuf) > 2*readChunk {
		l.inbuf = nil
		return nil
	}
	l.inbuf = l.inbuf[:copy(l.inbuf, b)]
	return nil
}

// tell says what has been taken, once that is at least step bytes more than the other end knows.
func (l *link) tell(step uint64) {
	if l.several && l.taken-l.told >= step {
		var w writer
		w.u64(l.taken)
		l.told = l.taken
		l.send(frameTaken, w)
	}
}

func (l *link) heardTaken(b []byte) error {
	r := reader{b: b}
	place := r.u64()
	if err := r.end("taken"); err != nil {
		return err
	}
	if place < l.acked || place > l.end() {
		return fmt.Errorf("%w: it has taken %d bytes, after %d and of %d", errFrame, place, l.acked, l.end())
	}
	l.acked = place
	return nil
}

func (l *link) close() {
	for _, p := range l.paths {
		p.close()
	}
	l.base = l.end()
	l.acked = l.base
	l.paths, l.queue, l.wire, l.inbuf = nil, nil, nil, nil
}
