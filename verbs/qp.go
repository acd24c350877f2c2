package verbs

import (
	"fmt"
	"math"
	"sync"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// QP is a reliable connected queue pair.
type QP struct {
	object
	pd     *PD
	number uint32
	limits QPLimits

	wrs   []driver.SendWR // a chain on its way, under mu
	recvs []driver.RecvWR
	sges  []driver.SGE

	noted sync.Mutex
	cause error
}

// QPConfig is a queue pair to be. SendCQ is required; the rest has defaults.
type QPConfig struct {
	SendCQ     *CQ
	RecvCQ     *CQ  // nil: SendCQ
	MaxSend    int  // requests posted and not completed; 0: 128
	MaxRecv    int  // alike; 0: 128
	MaxSendSGE int  // entries a request; 0: 1
	MaxRecvSGE int  // alike; 0: 1
	MaxInline  int  // bytes of an inline request; 0: 64; -1: none
	SignalAll  bool // each request completes, with SendSignaled or without
}

// QPLimits is what a queue pair got, which may be more than was asked for.
type QPLimits struct {
	MaxSend, MaxRecv, MaxSendSGE, MaxRecvSGE, MaxInline int
}

func orDefault(v, zero int) int {
	switch {
	case v == 0:
		return zero
	case v < 0:
		return 0
	}
	return v
}

func (f QPConfig) validate(c *Context) error {
	if f.SendCQ == nil {
		return invalid("QPConfig.SendCQ is nil: a queue pair completes somewhere")
	}
	if f.SendCQ.c != c || f.RecvCQ.c != c {
		return invalid("QPConfig.SendCQ or RecvCQ is of another context")
	}
	for _, n := range []struct {
		field   string
		v, most int
	}{
		{"MaxSend", f.MaxSend, c.attr.MaxQPWR}, {"MaxRecv", f.MaxRecv, c.attr.MaxQPWR},
		{"MaxSendSGE", f.MaxSendSGE, c.attr.MaxSGE}, {"MaxRecvSGE", f.MaxRecvSGE, c.attr.MaxSGE},
		{"MaxInline", max(f.MaxInline, 1), math.MaxInt32}, // a device tells no bound
	} {
		if n.v < 1 || n.v > n.most {
			return invalid("QPConfig.%s is %d: 1 to %d on %s", n.field, n.v, n.most, c.device.d.Name)
		}
	}
	return nil
}

// NewQP makes a queue pair in state reset.
//
// Implements: struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
func (pd *PD) NewQP(f QPConfig) (*QP, error) {
	if f.RecvCQ == nil {
		f.RecvCQ = f.SendCQ
	}
	f.MaxSend, f.MaxRecv = orDefault(f.MaxSend, 128), orDefault(f.MaxRecv, 128)
	f.MaxSendSGE, f.MaxRecvSGE = orDefault(f.MaxSendSGE, 1), orDefault(f.MaxRecvSGE, 1)
	f.MaxInline = orDefault(f.MaxInline, 64)
	if err := f.validate(pd.c); err != nil {
		return nil, err
	}
	if err := pd.enter(); err != nil {
		return nil, err
	}
	defer pd.mu.Unlock()
	want := driver.QPConfig{
		SendWRs: uint32(f.MaxSend), RecvWRs: uint32(f.MaxRecv), SendSGEs: uint32(f.MaxSendSGE), RecvSGEs: uint32(f.MaxRecvSGE),
		Inline: uint32(f.MaxInline), SignalAll: f.SignalAll,
	}
	first, second := f.SendCQ, f.RecvCQ
	if first.h > second.h { // in one order, whoever sends and receives by which
		first, second = second, first
	}
	if err := first.enter(); err != nil {
		return nil, err
	}
	defer first.mu.Unlock()
	if second != first {
		if err := second.enter(); err != nil {
			return nil, err
		}
		defer second.mu.Unlock()
	}
	want.SendCQ, want.RecvCQ = f.SendCQ.h, f.RecvCQ.h
	got, e := pd.c.t.CreateQP(pd.h, want)
	if e != 0 {
		return nil, fmt.Errorf("verbs: a queue pair of %d sends, %d receives, %d bytes inline: %w", f.MaxSend, f.MaxRecv, f.MaxInline, pd.c.fault("ibv_create_qp", e))
	}
	qp := &QP{
		object: object{c: pd.c, what: fmt.Sprintf("queue pair %#x", got.Number), h: got.Handle}, pd: pd, number: got.Number,
		limits: QPLimits{int(got.SendWRs), int(got.RecvWRs), int(got.SendSGEs), int(got.RecvSGEs), int(got.Inline)},
	}
	pd.c.adopt(qp)
	return qp, nil
}

// Close destroys the queue pair at once: what was posted is gone without a completion. Move it to error and poll the flush first
// where memory is to be used again.
//
// Implements: int ibv_destroy_qp(struct ibv_qp *qp)
func (q *QP) Close() error { return q.end(q, "ibv_destroy_qp", q.c.t.DestroyQP) }

// QPN is the queue pair's number, which the peer must know.
func (q *QP) QPN() uint32 { return q.number }

// Limits is what it got.
func (q *QP) Limits() QPLimits { return q.limits }

// Context is the device's.
func (q *QP) Context() *Context { return q.c }

// Handle is the struct ibv_qp, for calls that are not here; it is worth until Close.
func (q *QP) Handle() uintptr { return q.h }

// note keeps the first cause: a flushed one gives way to one that is not.
func (q *QP) note(err error) {
	q.noted.Lock()
	defer q.noted.Unlock()
	q.cause = Cause(q.cause, err)
}

// Err is why the queue pair failed, by the completions that were polled so far: the first that is not ErrFlushed, else the first;
// nil: none failed.
func (q *QP) Err() error {
	q.noted.Lock()
	defer q.noted.Unlock()
	return q.cause
}

// DataInOrder says whether what op writes arrives in the order of its bytes, so that its last byte can be a flag. Errors:
// *UnsupportedError without FeatureQueryDataInOrder; a false says that the device does not promise it.
//
// Implements: int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
func (q *QP) DataInOrder(op Op) (bool, error) {
	if !q.c.device.lib.Has(FeatureQueryDataInOrder) {
		return false, &UnsupportedError{Device: q.c.t.Library(), Feature: "no ibv_query_qp_data_in_order", Need: "rdma-core 43 or newer has it"}
	}
	if err := q.enter(); err != nil {
		return false, err
	}
	defer q.mu.Unlock()
	in, e := q.c.t.DataInOrder(q.h, uint32(op))
	return in, q.c.check("ibv_query_qp_data_in_order", e)
}
