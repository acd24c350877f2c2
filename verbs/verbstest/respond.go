package verbstest

import "github.com/hipfabric/hipfabric/verbs/internal/driver"

// checkWrite gives the status that the peer would refuse a write with.
func (q *qp) checkWrite(s *send, peer *qp) uint32 {
	return q.checkRemote(s, peer, accessRemoteWrite)
}

func (q *qp) checkRemote(s *send, peer *qp, access uint32) uint32 {
	if q.attr.MTU != peer.attr.MTU && s.bytes > uint64(mtuBytes(min(q.attr.MTU, peer.attr.MTU))) {
		return statusRemoteInvalid
	}
	if s.bytes == 0 {
		return 0
	}
	if peer.attr.Access&access == 0 || peer.pd.within(s.wr.RKey, s.wr.RemoteAddr, s.bytes, access) == nil {
		return statusRemoteAccess
	}
	return 0
}

// do moves a piece. It waits where the peer has no receive; a status fails the request.
func (q *qp) do(p piece, peer *qp) (waits bool, status uint32) {
	s := p.s
	switch p.kind {
	case place:
		if status = q.checkWrite(s, peer); status == 0 && s.data == nil && !q.pd.local(s.sge, 0) {
			return false, statusLocalProtection
		}
		if status == 0 && p.n > 0 {
			s.gather(p.off, p.n, func(at int, from []byte) { put(s.wr.RemoteAddr+uint64(at), from) })
		}
	case fetch:
		status = q.checkRemote(s, peer, accessRemoteRead)
		if status == 0 && peer.attr.MaxReadsIn == 0 {
			status = statusRemoteInvalid
		}
		if status == 0 && !q.pd.local(s.sge, accessLocalWrite) {
			return false, statusLocalProtection
		}
		if status == 0 && s.bytes > 0 {
			scatter(s.sge, view(s.wr.RemoteAddr, int(s.bytes)))
		}
	case deliver:
		return q.deliver(s, peer)
	}
	if status != 0 {
		peer.refuse(status)
	}
	return false, status
}

// refuse is the responder's end of a request that it denies.
func (q *qp) refuse(status uint32) {
	if status == statusRemoteAccess {
		q.pd.c.tell(driver.Async{Type: eventQPAccess, Handle: q.handle})
	}
	q.stop()
}

func (q *qp) deliver(s *send, peer *qp) (waits bool, status uint32) {
	if len(peer.rq) == 0 {
		return true, 0
	}
	wc := driver.WC{Op: 128, Bytes: uint32(s.bytes), SrcQP: q.number}
	if s.wr.Op == opWriteImm {
		wc.Op = 129
	}
	if s.wr.Op == opWriteImm || s.wr.Op == opSendImm {
		wc.Flags, wc.Imm = 2, s.wr.Imm
	}
	r := peer.rq[0]
	if s.wr.Op != opWriteImm {
		room := uint64(0)
		for _, e := range r.sge {
			room += uint64(e.Length)
		}
		switch {
		case q.attr.MTU != peer.attr.MTU && s.bytes > uint64(mtuBytes(min(q.attr.MTU, peer.attr.MTU))):
			peer.refuse(statusRemoteInvalid)
			return false, statusRemoteInvalid
		case s.data == nil && !q.pd.local(s.sge, 0):
			return false, statusLocalProtection
		case s.bytes > room:
			wc.Status, status = statusLocalLength, statusRemoteInvalid
		case !peer.pd.local(r.sge, accessLocalWrite):
			wc.Status, status = statusLocalProtection, statusRemoteOperation
		}
		if status == 0 && s.bytes > 0 {
			all := make([]byte, 0, s.bytes)
			s.gather(0, int(s.bytes), func(_ int, from []byte) { all = append(all, from...) })
			scatter(r.sge, all)
		}
	}
	peer.rq = peer.rq[1:]
	if peer.h.tamper != nil {
		wc.Imm, wc.Bytes = peer.h.tamper(wc.Imm, wc.Bytes)
	}
	peer.completeRecv(r, wc, s.wr.Flags&sendSolicited != 0)
	if status != 0 {
		peer.stop()
	}
	return false, status
}
