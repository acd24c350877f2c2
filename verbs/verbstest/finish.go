package verbstest

import "github.com/hipfabric/hipfabric/verbs/internal/driver"

// Numbers of enum ibv_wc_status.
const (
	statusLocalLength     = 1
	statusLocalOperation  = 2
	statusLocalProtection = 4
	statusFlushed         = 5
	statusRemoteInvalid   = 9
	statusRemoteAccess    = 10
	statusRemoteOperation = 11
	statusRetryExceeded   = 12
	statusRNRExceeded     = 13
)

// finished completes what is wholly placed, in the order of posting.
func (q *qp) finished() {
	for q.started > 0 && q.sq[0].left == 0 {
		s := q.sq[0]
		q.sq, q.started = q.sq[1:], q.started-1
		q.completeSend(s, 0)
	}
}

// completeSend says so if it failed, or was to. One that does not keeps its slot until a later one's completion is polled.
func (q *qp) completeSend(s *send, status uint32) {
	if status == 0 && s.wr.Flags&sendSignaled == 0 && !q.cfg.SignalAll {
		q.quiet++
		return
	}
	op := uint32(0)
	switch s.wr.Op {
	case opWrite, opWriteImm:
		op = 1
	case opRead:
		op = 2
	}
	wc := driver.WC{ID: s.wr.ID, Status: status, Op: op, QPN: q.number}
	if status != 0 {
		wc = garbled(wc)
	} else {
		wc.Bytes = uint32(s.bytes)
		if s.wr.Op == opWriteImm || s.wr.Op == opSendImm {
			wc.Flags, wc.Imm = 2, 0xdeadbeef // as rxe flags it, and worth nothing
		}
	}
	slots := q.quiet + 1
	q.quiet = 0
	q.sendCQ.push(entry{wc: wc, q: q, life: q.life, sends: slots}, false)
}

func (q *qp) completeRecv(r *receive, wc driver.WC, solicited bool) {
	wc.ID, wc.QPN = r.id, q.number
	if wc.Status != 0 {
		wc = garbled(wc)
	}
	q.recvCQ.push(entry{wc: wc, q: q, life: q.life, recvs: 1}, solicited)
}

// garbled has what a failed completion is worth, and the rest such that nobody gets used to it.
func garbled(wc driver.WC) driver.WC {
	return driver.WC{ID: wc.ID, Status: wc.Status, VendorErr: 0x80 | wc.Status, QPN: wc.QPN, Op: 0xdead, Bytes: 0xdeadbeef, Imm: 0xdeadbeef, Flags: 0xdead}
}

// fail ends the oldest request with a status, and the queue pair.
func (q *qp) fail(status uint32) {
	s := q.sq[0]
	q.sq = q.sq[1:]
	q.completeSend(s, status)
	q.stop()
}

// stop moves the queue pair to ERR: all that is posted is flushed, in order.
func (q *qp) stop() {
	if q.state == stateErr {
		return
	}
	q.state = stateErr
	sq, rq := q.sq, q.rq
	q.sq, q.rq, q.pieces, q.started = nil, nil, nil, 0
	for _, s := range sq {
		q.completeSend(s, statusFlushed)
	}
	for _, r := range rq {
		q.completeRecv(r, driver.WC{Status: statusFlushed}, false)
	}
	q.rest()
}

// forget drops all that is posted, without completions.
func (q *qp) forget() {
	q.sq, q.rq, q.pieces = nil, nil, nil
	q.started, q.sends, q.recvs, q.quiet = 0, 0, 0, 0
	q.life++
}
