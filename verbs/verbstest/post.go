package verbstest

import (
	"syscall"
	"time"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// send is a request that was posted.
type send struct {
	wr    driver.SendWR
	sge   []driver.SGE
	data  []byte // inline
	bytes uint64
	left  int // pieces
	due   time.Time
}

// receive is room that was posted.
type receive struct {
	id  uint64
	sge []driver.SGE
}

const (
	opWrite = iota
	opWriteImm
	opSend
	opSendImm
	opRead
)

const (
	sendSignaled  = 2
	sendSolicited = 4
	sendInline    = 8
)

func (t *table) PostSend(handle uintptr, wr []driver.SendWR, sge []driver.SGE) (posted int, e syscall.Errno) {
	if e := t.call("ibv_post_send"); e != 0 {
		return 0, e
	}
	defer t.f.mu.Unlock()
	q, e := find[*qp](t, handle)
	if e != 0 {
		return 0, e
	}
	for i := range wr {
		list := sge[:wr[i].SGEs]
		sge = sge[wr[i].SGEs:]
		if e := q.post(wr[i], list); e != 0 {
			q.work()
			return i, e
		}
	}
	if q.h.locals && q.h.down && q.state == stateRTS && len(q.sq) > 0 {
		q.fail(statusLocalOperation)
	}
	q.work()
	return len(wr), 0
}

func (q *qp) post(wr driver.SendWR, sge []driver.SGE) syscall.Errno {
	s := &send{wr: wr, sge: append([]driver.SGE(nil), sge...)}
	for _, e := range sge {
		s.bytes += uint64(e.Length)
	}
	inline := wr.Flags&sendInline != 0
	switch {
	case q.state < stateRTS || wr.Op > opRead || len(sge) > int(q.cfg.SendSGEs):
		return syscall.EINVAL
	case inline && (s.bytes > uint64(q.cfg.Inline) || wr.Op == opRead):
		return syscall.EINVAL
	case q.sends >= int(q.cfg.SendWRs):
		return syscall.ENOMEM
	}
	q.sends++
	if q.state == stateErr {
		q.completeSend(s, statusFlushed)
		return 0
	}
	if inline {
		s.data = make([]byte, 0, s.bytes)
		for _, e := range sge {
			s.data = append(s.data, view(e.Addr, int(e.Length))...)
		}
	}
	if q.f.delayMax > 0 {
		s.due = time.Now().Add(q.f.delayMin + time.Duration(q.rng.Int64N(int64(q.f.delayMax-q.f.delayMin)+1)))
	}
	q.sq = append(q.sq, s)
	return 0
}

func (t *table) PostRecv(handle uintptr, wr []driver.RecvWR, sge []driver.SGE) (posted int, e syscall.Errno) {
	if e := t.call("ibv_post_recv"); e != 0 {
		return 0, e
	}
	defer t.f.mu.Unlock()
	q, e := find[*qp](t, handle)
	if e != 0 {
		return 0, e
	}
	for i, w := range wr {
		list := sge[:w.SGEs]
		sge = sge[w.SGEs:]
		switch {
		case q.state == stateReset || len(list) > int(q.cfg.RecvSGEs):
			return i, syscall.EINVAL
		case q.recvs >= int(q.cfg.RecvWRs):
			return i, syscall.ENOMEM
		}
		q.recvs++
		r := &receive{id: w.ID, sge: append([]driver.SGE(nil), list...)}
		if q.state == stateErr {
			q.completeRecv(r, driver.WC{Status: statusFlushed}, false)
			continue
		}
		q.rq = append(q.rq, r)
	}
	return len(wr), 0
}
