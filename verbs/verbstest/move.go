package verbstest

import "time"

// piece is the part of a request that moves at once.
type piece struct {
	s      *send
	kind   int
	off, n int // of a write
	status uint32
}

const (
	place   = iota // a part of a write
	deliver        // a send, or a write's immediate: takes a receive
	fetch          // a read
	refuse         // the request is wrong here
)

const window = 64 // pieces that may pass each other

// split breaks a request into pieces.
func (q *qp) split(s *send) {
	add := func(p piece) {
		p.s = s
		s.left++
		q.pieces = append(q.pieces, p)
	}
	access := uint32(0)
	if s.wr.Op == opRead {
		access = accessLocalWrite
	}
	switch {
	case s.bytes > maxMessage:
		add(piece{kind: refuse, status: statusLocalLength})
	case s.data == nil && !q.pd.local(s.sge, access):
		add(piece{kind: refuse, status: statusLocalProtection})
	case s.wr.Op == opRead && q.attr.MaxReadsOut == 0:
		add(piece{kind: refuse, status: statusLocalOperation})
	case s.wr.Op == opRead:
		add(piece{kind: fetch})
	case s.wr.Op == opSend || s.wr.Op == opSendImm:
		add(piece{kind: deliver})
	default:
		unit := mtuBytes(q.attr.MTU)
		if q.f.outOfOrder || q.f.relaxed() {
			unit = min(unit, max(64, int(s.bytes)/16&^63))
		}
		for off := 0; off == 0 || off < int(s.bytes); off += unit {
			add(piece{kind: place, off: off, n: min(unit, int(s.bytes)-off)})
		}
		if s.wr.Op == opWriteImm {
			add(piece{kind: deliver})
		}
	}
}

// relaxed says that some memory takes writes in any order.
func (f *Fabric) relaxed() bool {
	for _, h := range f.hosts {
		for _, c := range h.hcas {
			if c.relaxed > 0 {
				return true
			}
		}
	}
	return false
}

// due is when the queue pair has something to do.
func (q *qp) due() time.Time {
	at := q.sq[0].due
	if q.blocked.After(at) {
		at = q.blocked
	}
	return at
}

// advance does the queue pair's next thing.
func (q *qp) advance(now time.Time) {
	for q.started < len(q.sq) && len(q.pieces) < window {
		q.split(q.sq[q.started])
		q.started++
	}
	first := q.pieces[0]
	if first.kind == refuse {
		q.fail(first.status)
		return
	}
	peer := q.reach(min(int(first.s.bytes), mtuBytes(q.attr.MTU)))
	if peer == nil || q.f.loss > 0 && q.rng.Float64() < q.f.loss {
		q.again(now)
		return
	}
	i := q.choose(peer, now)
	p := q.pieces[i]
	waits, status := q.do(p, peer)
	switch {
	case waits:
		q.ask(now, peer)
		return
	case status != 0:
		q.fail(status)
		return
	}
	copy(q.pieces[1:i+1], q.pieces[:i])
	q.pieces = q.pieces[1:]
	p.s.left--
	q.tries, q.rnrs = 0, q.attr.RNRRetry
	q.finished()
}

// again waits for an acknowledgement that does not come.
func (q *qp) again(now time.Time) {
	if q.attr.Timeout == 0 {
		q.blocked = now.Add(time.Second) // for ever: only to look again
		return
	}
	if q.tries > q.attr.RetryCount {
		q.fail(statusRetryExceeded)
		return
	}
	q.tries++
	q.blocked = now.Add(4096 * time.Nanosecond << q.attr.Timeout)
}

// ask waits as the peer, which has no receive, wants it.
func (q *qp) ask(now time.Time, peer *qp) {
	switch q.rnrs {
	case 0:
		q.fail(statusRNRExceeded)
		return
	case 7:
	default:
		q.rnrs--
	}
	q.blocked = now.Add(rnrWait(peer.attr.MinRNRTimer))
}

// rnrWait is the time that a code from 0 to 31 asks for: 0 is 655.36 ms, and each two steps from 2 on double.
func rnrWait(code uint32) time.Duration {
	const unit = 10 * time.Microsecond
	switch {
	case code == 0:
		return 65536 * unit
	case code < 4:
		return time.Duration(code) * unit
	case code%2 == 0:
		return unit << (code / 2)
	}
	return 3 * unit << (code/2 - 1)
}

// choose gives the index of the piece that moves next: the first, or one that may pass those before it.
func (q *qp) choose(peer *qp, now time.Time) int {
	if !q.f.outOfOrder && peer.h.relaxed == 0 {
		return 0
	}
	var may [window]int
	n := 0
	for i := range q.pieces[:min(window, len(q.pieces))] {
		p := &q.pieces[i]
		if p.kind != place || p.s.due.After(now) || i > 0 && q.checkWrite(p.s, peer) != 0 {
			if i == 0 {
				return 0
			}
			break // nothing passes it
		}
		if i == 0 || q.f.outOfOrder || peer.h.keys[p.s.wr.RKey] != nil && peer.h.keys[p.s.wr.RKey].access&accessRelaxed != 0 {
			may[n] = i
			n++
		}
	}
	return may[q.rng.IntN(n)]
}
