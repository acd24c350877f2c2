package bootstrap

const (
	readChunk = 64 << 10
	maxPass   = 4 << 20 // bytes read from one link before the others' turn
)

// link is one control connection as the loop drives it: a raw non-blocking socket, frames in, frames out.
type link struct {
	peer     int
	fd       int // -1 once closed
	in, out  *seal
	ready    bool // set by the poller
	writable bool

	inbuf []byte
	queue []frame // not sealed yet
	wire  []byte  // sealed, in part written
	sent  int     // bytes of wire that are written

	left bool // the other end has said goodbye
	bye  bool // this end has: nothing more is queued
	shut bool // and nothing more is written
}

// frame is queued by reference: a payload that goes to many links is one slice.
type frame struct {
	kind    frameType
	payload []byte
}

func (l *link) send(kind frameType, payload []byte) {
	if l.fd >= 0 && !l.left && !l.bye {
		l.queue = append(l.queue, frame{kind, payload})
	}
}

func (l *link) unsent() bool { return len(l.queue) > 0 || l.sent < len(l.wire) }

// flush writes what the socket takes.
func (l *link) flush() error {
	for l.fd >= 0 && l.unsent() {
		if l.sent == len(l.wire) {
			l.fill()
		}
		n, err := writeFD(l.fd, l.wire[l.sent:])
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		l.sent += n
	}
	return nil
}

// fill seals queued frames into the empty wire buffer, up to about a chunk.
func (l *link) fill() {
	l.wire, l.sent = l.wire[:0], 0
	n := 0
	for n < len(l.queue) && (n == 0 || len(l.wire) < readChunk) {
		l.wire = l.out.append(l.wire, l.queue[n].kind, l.queue[n].payload)
		l.queue[n] = frame{}
		n++
	}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
}

// read takes what the socket has and hands over each whole frame. any says that at least one byte came. io.EOF and
// other errors end the link; frames that came before are handed over first.
func (l *link) read(scratch []byte, handle func(frameType, []byte) error) (any bool, err error) {
	for total := 0; total < maxPass && l.fd >= 0; {
		n, err := readFD(l.fd, scratch)
		if n == 0 || err != nil {
			return any, err
		}
		any, total = true, total+n
		l.inbuf = append(l.inbuf, scratch[:n]...)
		if err := l.frames(handle); err != nil {
			return any, err
		}
		if n < len(scratch) {
			// A short read has emptied the socket; what comes next wakes the poller.
			return any, nil
		}
	}
	return any, nil
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

func (l *link) close() {
	if l.fd >= 0 {
		closeFD(l.fd)
		l.fd = -1
	}
	l.queue, l.wire, l.inbuf, l.sent = nil, nil, nil, 0
}
