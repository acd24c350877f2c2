package verbs

import (
	"fmt"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

type (
	// SeamPiece is bytes of registered memory.
	SeamPiece = struct {
		Addr        uint64
		Bytes, LKey uint32
	}
	// SeamWork is a write. Pieces of no bytes are left out.
	SeamWork = struct {
		ID        uint64
		Pieces    [2]SeamPiece
		Remote    uint64
		RKey      uint32
		Imm       uint32
		Immediate bool // with Imm
		Inline    bool
		Signaled  bool
	}
	// SeamCompletion is a request's or a receive's end. Of one that failed only ID, QPN, Failed, Flushed and Text are worth anything.
	SeamCompletion = struct {
		ID        uint64
		QPN       uint32
		Imm       uint32
		Receive   bool
		Immediate bool
		Failed    bool
		Flushed   bool
		Text      string
	}
)

// Post is QP.PostSend of writes. It allocates nothing.
func (s *Seam) Post(qp uintptr, chain []SeamWork) (posted int, err error) {
	q, err := s.qp(qp)
	if err != nil {
		return 0, err
	}
	return q.postWrites(chain)
}

func (q *QP) postWrites(chain []SeamWork) (posted int, err error) {
	if len(chain) == 0 {
		return 0, nil
	}
	if err := q.enter(); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	q.wrs, q.sges = q.wrs[:0], q.sges[:0]
	for i := range chain {
		w := &chain[i]
		r := driver.SendWR{ID: w.ID, RemoteAddr: w.Remote, RKey: w.RKey, Op: uint32(OpWrite)}
		if w.Immediate {
			r.Op, r.Imm = uint32(OpWriteImm), w.Imm
		}
		if w.Inline {
			r.Flags = uint32(SendInline)
		}
		if w.Signaled {
			r.Flags |= uint32(SendSignaled)
		}
		for j := range w.Pieces {
			if p := &w.Pieces[j]; p.Bytes > 0 {
				q.sges = append(q.sges, driver.SGE{Addr: p.Addr, Length: p.Bytes, LKey: p.LKey})
				r.SGEs++
			}
		}
		q.wrs = append(q.wrs, r)
	}
	n, e := q.c.t.PostSend(q.h, q.wrs, q.sges)
	return n, q.c.check("ibv_post_send", e)
}

// PostReceives queues n receives of no bytes. Where it fails some may be queued.
func (s *Seam) PostReceives(qp uintptr, n int) error {
	q, err := s.qp(qp)
	if err != nil {
		return err
	}
	return q.postEmpty(n)
}

func (q *QP) postEmpty(n int) error {
	if n < 0 || n > q.limits.MaxRecv {
		return invalid("%d receives: 0 to %d of queue pair %#x", n, q.limits.MaxRecv, q.number)
	}
	if n == 0 {
		return nil
	}
	if err := q.enter(); err != nil {
		return err
	}
	defer q.mu.Unlock()
	q.recvs = q.recvs[:0]
	for range n {
		q.recvs = append(q.recvs, driver.RecvWR{})
	}
	_, e := q.c.t.PostRecv(q.h, q.recvs, nil)
	return q.c.check("ibv_post_recv", e)
}

// Poll fills into with completions of all the HCA's queue pairs and says how many. It allocates nothing but texts of what failed.
func (s *Seam) Poll(hca uintptr, into []SeamCompletion) (int, error) {
	h, err := s.hca(hca)
	if err != nil {
		return 0, err
	}
	return h.cq.pollInto(into)
}

func (cq *CQ) pollInto(into []SeamCompletion) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	if err := cq.enter(); err != nil {
		return 0, err
	}
	defer cq.mu.Unlock()
	if len(cq.wcs) < len(into) {
		cq.wcs = make([]driver.WC, len(into))
	}
	n, e := cq.c.t.Poll(cq.h, cq.wcs[:len(into)])
	for i := range cq.wcs[:n] {
		w := &cq.wcs[i]
		if w.Status != 0 {
			into[i] = cq.failure(w)
			continue
		}
		into[i] = SeamCompletion{ID: w.ID, QPN: w.QPN}
		if w.Op&uint32(CompletedRecv) != 0 { // some devices flag a request that had an immediate too
			into[i].Receive, into[i].Immediate, into[i].Imm = true, w.Flags&uint32(CompletionImm) != 0, w.Imm
		}
	}
	return n, cq.c.check("ibv_poll_cq", e)
}

//go:noinline
func (cq *CQ) failure(w *driver.WC) SeamCompletion {
	status := Status(w.Status)
	cq.failed(&WC{ID: w.ID, Status: status, VendorErr: w.VendorErr, QPN: w.QPN})
	return SeamCompletion{
		ID: w.ID, QPN: w.QPN, Failed: true, Flushed: status == StatusFlushed,
		Text: fmt.Sprintf("%s (status %d, vendor error %#x)", status, w.Status, w.VendorErr),
	}
}
