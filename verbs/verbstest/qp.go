package verbstest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

type qp struct {
	f              *Fabric
	h              *HCA
	pd             *pd
	sendCQ, recvCQ *cq
	handle         uintptr
	number         uint32
	turn           uint64 // of those that the HCA made
	cfg            driver.QPConfig
	state          uint32
	attr           driver.QPAttr
	sgid           driver.GID // since it was connected

	sq      []*send // posted and not complete, in order
	started int     // so many of sq are in pieces
	pieces  []piece // not placed, in order
	rq      []*receive
	sends   int // slots taken: until a later completion is polled
	recvs   int
	quiet   int // slots of sends that completed without saying so
	life    int // grows with each reset

	tries, rnrs uint32 // packets lost in a row; times that a peer may still be without a receive
	blocked     time.Time
	active      bool
	rng         *rand.Rand
}

func (h *HCA) ordered() []*qp {
	var all []*qp
	for _, q := range h.qps {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *qp) int { return cmp.Compare(a.turn, b.turn) })
	return all
}

func (t *table) CreateQP(handle uintptr, c driver.QPConfig) (driver.QP, syscall.Errno) {
	if e := t.call("ibv_create_qp"); e != 0 {
		return driver.QP{}, e
	}
	defer t.f.mu.Unlock()
	p, e := find[*pd](t, handle)
	if e != 0 {
		return driver.QP{}, e
	}
	send, e1 := find[*cq](t, c.SendCQ)
	recv, e2 := find[*cq](t, c.RecvCQ)
	h := p.c.h
	switch {
	case h.dead:
		return driver.QP{}, syscall.EIO
	case e1 != 0 || e2 != 0 || send.c != p.c || recv.c != p.c:
		return driver.QP{}, syscall.EINVAL
	case c.Inline > maxInline || c.SendWRs > 1<<14 || c.RecvWRs > 1<<14 || c.SendSGEs > 30 || c.RecvSGEs > 30:
		return driver.QP{}, syscall.EINVAL
	case len(h.qps) >= maxQPs:
		return driver.QP{}, syscall.ENOMEM
	}
	h.made++
	h.numbers = (h.numbers + 1) & 0xffffff
	for h.qps[h.numbers] != nil || h.numbers < 2 {
		h.numbers = (h.numbers + 1) & 0xffffff
	}
	q := &qp{
		f: t.f, h: h, pd: p, sendCQ: send, recvCQ: recv, number: h.numbers, turn: h.made, cfg: c,
		rng: rand.New(rand.NewPCG(t.f.seed, uint64(h.host.index+1)<<48|uint64(h.index)<<40|h.made)),
	}
	q.handle = t.f.enter(q)
	h.qps[q.number] = q
	send.qps[q]++
	recv.qps[q]++
	p.left++
	p.c.left++
	t.h.left.QPs++
	return driver.QP{
		Handle: q.handle, Number: q.number, SendWRs: c.SendWRs, RecvWRs: c.RecvWRs, SendSGEs: c.SendSGEs, RecvSGEs: c.RecvSGEs, Inline: c.Inline,
	}, 0
}

func (t *table) DestroyQP(handle uintptr) syscall.Errno {
	if e := t.call("ibv_destroy_qp"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	q, e := find[*qp](t, handle)
	if e != 0 {
		return e
	}
	q.forget()
	q.state = stateReset
	q.rest()
	delete(q.sendCQ.qps, q)
	delete(q.recvCQ.qps, q)
	delete(q.h.qps, q.number)
	delete(t.f.objects, handle)
	q.pd.left--
	q.pd.c.left--
	t.h.left.QPs--
	return 0
}

func (t *table) ModifyQP(handle uintptr, a *driver.QPAttr, mask uint32) syscall.Errno {
	if e := t.call("ibv_modify_qp"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	q, e := find[*qp](t, handle)
	if e != 0 {
		return e
	}
	to := q.state
	if mask&maskState != 0 {
		to = a.State
	}
	if e := permitted(q.state, to, mask); e != 0 {
		return e
	}
	switch {
	case to == stateErr:
		q.stop()
		return 0
	case to == stateReset:
		q.forget()
		q.attr = driver.QPAttr{}
	case q.h.dead:
		return syscall.EIO
	}
	next := q.merged(a, mask)
	sgid := q.sgid
	if mask&maskPort != 0 && a.Port != 1 || mask&maskPKey != 0 && int(a.PKeyIndex) >= len(q.h.pkeys) || next.Access&^0xf != 0 {
		return syscall.EINVAL
	}
	if mask&maskReadsIn != 0 && a.MaxReadsIn > 16 || mask&maskReadsOut != 0 && a.MaxReadsOut > 16 {
		return syscall.EINVAL
	}
	if mask&maskMTU != 0 && (a.MTU < 1 || a.MTU > q.h.mtu) {
		return syscall.EINVAL
	}
	if mask&maskAddress != 0 {
		if sgid, e = q.h.route(a); e != 0 {
			return e
		}
	}
	q.attr, q.sgid, q.state = next, sgid, to
	q.attr.State = to
	q.tries, q.rnrs, q.blocked = 0, q.attr.RNRRetry, time.Time{}
	q.rest()
	q.work()
	return 0
}

func (q *qp) merged(a *driver.QPAttr, mask uint32) driver.QPAttr {
	n := q.attr
	for _, m := range []struct {
		bit      uint32
		to, from *uint32
	}{
		{maskAccess, &n.Access, &a.Access}, {maskPKey, &n.PKeyIndex, &a.PKeyIndex}, {maskPort, &n.Port, &a.Port}, {maskMTU, &n.MTU, &a.MTU},
		{maskTimeout, &n.Timeout, &a.Timeout}, {maskRetries, &n.RetryCount, &a.RetryCount}, {maskRNRRetries, &n.RNRRetry, &a.RNRRetry},
		{maskRecvPSN, &n.RQPSN, &a.RQPSN}, {maskReadsOut, &n.MaxReadsOut, &a.MaxReadsOut}, {maskRNRTimer, &n.MinRNRTimer, &a.MinRNRTimer},
		{maskSendPSN, &n.SQPSN, &a.SQPSN}, {maskReadsIn, &n.MaxReadsIn, &a.MaxReadsIn}, {maskPeer, &n.DestQPN, &a.DestQPN},
		{maskAddress, &n.Global, &a.Global}, {maskAddress, &n.SGIDIndex, &a.SGIDIndex}, {maskAddress, &n.HopLimit, &a.HopLimit},
		{maskAddress, &n.TrafficClass, &a.TrafficClass}, {maskAddress, &n.FlowLabel, &a.FlowLabel}, {maskAddress, &n.SL, &a.SL},
	} {
		if mask&m.bit != 0 {
			*m.to = *m.from
		}
	}
	if mask&maskAddress != 0 {
		n.GID = a.GID
	}
	return n
}

func (t *table) QueryQP(handle uintptr, _ uint32) (driver.QPAttr, syscall.Errno) {
	if e := t.call("ibv_query_qp"); e != 0 {
		return driver.QPAttr{}, e
	}
	defer t.f.mu.Unlock()
	q, e := find[*qp](t, handle)
	if e != 0 {
		return driver.QPAttr{}, e
	}
	a := q.attr
	a.State = q.state
	return a, 0
}

func (t *table) DataInOrder(handle uintptr, op uint32) (bool, syscall.Errno) {
	if e := t.call("ibv_query_qp_data_in_order"); e != 0 {
		return false, e
	}
	defer t.f.mu.Unlock()
	if _, e := find[*qp](t, handle); e != 0 {
		return false, e
	}
	if t.h.lacks[driver.SymbolDataInOrder] {
		return false, syscall.ENOSYS
	}
	return !t.f.outOfOrder && !t.f.denyOrder && op <= opRead, 0
}
