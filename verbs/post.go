package verbs

import "github.com/hipfabric/hipfabric/verbs/internal/driver"

// Op is what a request asks for.
type Op uint32

// What can be asked for.
const (
	OpWrite    Op = 0
	OpWriteImm Op = 1 // takes a receive of the peer's, which completes with Imm
	OpSend     Op = 2
	OpSendImm  Op = 3
	OpRead     Op = 4
)

func (o Op) String() string {
	if names := [...]string{"write", "write with immediate", "send", "send with immediate", "read"}; int(o) < len(names) {
		return names[o]
	}
	return "unknown operation"
}

// SendFlags are a request's.
type SendFlags uint32

// The flags of requests.
const (
	SendFence     SendFlags = 1 // after the reads before it
	SendSignaled  SendFlags = 2 // completes; a failure always does
	SendSolicited SendFlags = 4 // wakes a peer that armed for solicited completions
	SendInline    SendFlags = 8 // the bytes are copied now: the memory is free at once, and need not be registered
)

// SGE is bytes of registered memory.
type SGE struct {
	Addr   uint64
	Length uint32 // bytes
	LKey   uint32
}

// SendWR is a request. RemoteAddr and RKey are a write's and a read's; Imm is for those with immediate.
type SendWR struct {
	ID         uint64 // the completion's
	Op         Op
	Flags      SendFlags
	SGE        []SGE // none: no bytes
	RemoteAddr uint64
	RKey       uint32
	Imm        uint32
}

// RecvWR is room for a message.
type RecvWR struct {
	ID  uint64
	SGE []SGE
}

// PostSend queues a chain, in order, with one call of the table. It does not block; the requests' own memory is free when it returns.
// Where it fails the first posted requests are queued, and no others: ENOMEM says that the queue is full.
//
// Implements: int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
func (q *QP) PostSend(chain ...SendWR) (posted int, err error) {
	if err := q.enter(); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	q.wrs, q.sges = q.wrs[:0], q.sges[:0]
	for i := range chain {
		w := &chain[i]
		q.wrs = append(q.wrs, driver.SendWR{
			ID: w.ID, RemoteAddr: w.RemoteAddr, RKey: w.RKey, Op: uint32(w.Op), Flags: uint32(w.Flags), Imm: w.Imm, SGEs: uint32(len(w.SGE)),
		})
		q.gather(w.SGE)
	}
	if len(q.wrs) == 0 {
		return 0, nil
	}
	n, e := q.c.t.PostSend(q.h, q.wrs, q.sges)
	return n, q.c.check("ibv_post_send", e)
}

// PostRecv queues room for messages, as PostSend does.
//
// Implements: int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
func (q *QP) PostRecv(chain ...RecvWR) (posted int, err error) {
	if err := q.enter(); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	q.recvs, q.sges = q.recvs[:0], q.sges[:0]
	for i := range chain {
		q.recvs = append(q.recvs, driver.RecvWR{ID: chain[i].ID, SGEs: uint32(len(chain[i].SGE))})
		q.gather(chain[i].SGE)
	}
	if len(q.recvs) == 0 {
		return 0, nil
	}
	n, e := q.c.t.PostRecv(q.h, q.recvs, q.sges)
	return n, q.c.check("ibv_post_recv", e)
}

// gather copies, so that a chain of the caller's need not be on the heap.
func (q *QP) gather(list []SGE) {
	for _, s := range list {
		q.sges = append(q.sges, driver.SGE(s))
	}
}
