package verbs

import (
	"context"
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// Channel tells of completions, so that who waits for them need not poll.
type Channel struct {
	object
	fd int
	p  *parking
}

// NewChannel makes a channel for any number of CQs.
//
// Implements: struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
func (c *Context) NewChannel() (*Channel, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.live.RUnlock()
	h, fd, e := c.t.CreateChannel(c.h)
	if e != 0 {
		return nil, c.fault("ibv_create_comp_channel", e)
	}
	p, err := park(fd, c.device.d.Name+" completions")
	if err != nil {
		_ = c.t.DestroyChannel(h) // the first error is what matters
		return nil, fmt.Errorf("verbs: a completion channel of %s: %w", c.device.d.Name, err)
	}
	ch := &Channel{object: object{c: c, what: "completion channel", h: h}, fd: fd, p: p}
	c.adopt(ch)
	return ch, nil
}

// Close lets Wait return. It fails with EBUSY while CQs of the channel are open.
//
// Implements: int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
func (ch *Channel) Close() error {
	err := ch.end(ch, "ibv_destroy_comp_channel", ch.c.t.DestroyChannel)
	if err == nil {
		ch.p.close() // not under mu, for which who waits may wait
	}
	return err
}

// FD is readable while Event has one; -1 where there is no such descriptor. It is the channel's, and must not be read or closed.
func (ch *Channel) FD() int { return ch.fd }

// Wait waits for a CQ that was armed and has a completion, and gives it: arm it again, then poll it until it is empty. One waits at a
// time. It ends by ctx, whose error it then returns, or by Close: os.ErrClosed.
//
// Implements: int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context), void
// ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
func (ch *Channel) Wait(ctx context.Context) (*CQ, error) {
	var cq *CQ
	err := ch.p.wait(ctx, func() (there bool, err error) {
		cq, there, err = ch.Event()
		return there, err
	})
	if err != nil && ch.ended() {
		return nil, ch.closed()
	}
	return cq, err
}

// Event takes the channel's next event if there is one. It does not block.
//
// Implements: int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context), void
// ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
func (ch *Channel) Event() (cq *CQ, there bool, err error) {
	if err := ch.enter(); err != nil {
		return nil, false, err
	}
	defer ch.mu.Unlock()
	ch.c.books.Lock()
	defer ch.c.books.Unlock()
	for {
		h, e := ch.c.t.CQEvent(ch.h)
		switch {
		case e == syscall.EAGAIN:
			return nil, false, nil
		case e != 0:
			return nil, false, ch.c.fault("ibv_get_cq_event", e)
		}
		if cq = ch.c.cqs[h]; cq != nil { // else it was closed since
			return cq, true, nil
		}
	}
}

// CQ is a completion queue.
type CQ struct {
	object
	capacity int
	wcs      []driver.WC // a batch on its way, under mu
}

// CQConfig is a completion queue to be.
type CQConfig struct {
	Entries int      // at least so many completions have room; 0: 256. More, not polled, are lost, and their queue pairs with them
	Channel *Channel // nil: the CQ can only be polled
	Vector  int      // which of the device's interrupts, from 0
}

// NewCQ makes a completion queue.
//
// Implements: struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
// int comp_vector)
func (c *Context) NewCQ(f CQConfig) (*CQ, error) {
	if f.Entries == 0 {
		f.Entries = 256
	}
	if f.Entries < 1 || f.Entries > c.attr.MaxCQE {
		return nil, invalid("CQConfig.Entries is %d: 1 to %d on %s", f.Entries, c.attr.MaxCQE, c.device.d.Name)
	}
	if f.Vector < 0 || f.Vector > math.MaxInt32 {
		return nil, invalid("CQConfig.Vector is %d: 0 or more on %s", f.Vector, c.device.d.Name)
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.live.RUnlock()
	var channel uintptr
	if f.Channel != nil {
		if f.Channel.c != c {
			return nil, invalid("CQConfig.Channel is of another context")
		}
		if err := f.Channel.enter(); err != nil {
			return nil, err
		}
		defer f.Channel.mu.Unlock()
		channel = f.Channel.h
	}
	h, capacity, e := c.t.CreateCQ(c.h, f.Entries, channel, f.Vector)
	if e != 0 {
		return nil, fmt.Errorf("verbs: a CQ of %d entries: %w", f.Entries, c.fault("ibv_create_cq", e))
	}
	cq := &CQ{object: object{c: c, what: "CQ", h: h}, capacity: capacity}
	c.adopt(cq)
	return cq, nil
}

// Close fails with EBUSY while queue pairs complete there.
//
// Implements: int ibv_destroy_cq(struct ibv_cq *cq)
func (cq *CQ) Close() error { return cq.end(cq, "ibv_destroy_cq", cq.c.t.DestroyCQ) }

// Entries is how many completions have room.
func (cq *CQ) Entries() int { return cq.capacity }

// Arm has the next completion tell the channel, once; with solicited set only one that its sender flagged SendSolicited, or that
// failed. A completion that came before does not count: poll after arming.
//
// Implements: int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
func (cq *CQ) Arm(solicited bool) error {
	if err := cq.enter(); err != nil {
		return err
	}
	defer cq.mu.Unlock()
	return cq.c.check("ibv_req_notify_cq", cq.c.t.Arm(cq.h, solicited))
}

// WC is a completion. Of one that failed only ID, Status, VendorErr and QPN are worth anything.
type WC struct {
	ID        uint64 // the request's
	Status    Status
	Op        CompletionOp
	VendorErr uint32
	Bytes     uint32 // received
	Imm       uint32 // where Flags has CompletionImm
	QPN       uint32 // our queue pair's
	SrcQP     uint32
	Flags     CompletionFlags
}

// CompletionOp is what was completed.
type CompletionOp uint32

// What completes.
const (
	CompletedSend      CompletionOp = 0
	CompletedWrite     CompletionOp = 1
	CompletedRead      CompletionOp = 2
	CompletedRecv      CompletionOp = 128
	CompletedRecvWrite CompletionOp = 129 // a peer's write with immediate, which took a receive
)

// CompletionFlags are a completion's.
type CompletionFlags uint32

// The flags of completions.
const (
	CompletionGRH CompletionFlags = 1
	CompletionImm CompletionFlags = 2
)

// They lie alike, so that a batch is filled in place: a pair fails to compile where they do not.
const (
	_ = unsafe.Sizeof(WC{}) - unsafe.Sizeof(driver.WC{})
	_ = unsafe.Sizeof(driver.WC{}) - unsafe.Sizeof(WC{})
)

// Poll fills wc with completions and says how many; 0: there are none. It never blocks. Keep wc for the next Poll: one made anew
// is allocated. What failed is an element like others; CQ.Err makes an error of it, and the queue pair's Err remembers it.
//
// Implements: int ibv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
func (cq *CQ) Poll(wc []WC) (int, error) {
	if len(wc) == 0 {
		return 0, nil
	}
	if err := cq.enter(); err != nil {
		return 0, err
	}
	n, e := cq.c.t.Poll(cq.h, unsafe.Slice((*driver.WC)(unsafe.Pointer(unsafe.SliceData(wc))), len(wc)))
	cq.mu.Unlock()
	for i := range wc[:n] {
		if wc[i].Status != StatusSuccess {
			cq.failed(&wc[i])
		}
	}
	return n, cq.c.check("ibv_poll_cq", e)
}

// failed remembers a failure where the next call on the queue pair finds it.
//
//go:noinline
func (cq *CQ) failed(wc *WC) {
	if q := cq.c.qp(wc.QPN); q != nil {
		q.note(cq.Err(*wc))
	}
}

// Err is nil of a success; else a *CompletionError.
func (cq *CQ) Err(wc WC) error {
	if wc.Status == StatusSuccess {
		return nil
	}
	return &CompletionError{Device: cq.c.device.d.Name, QPN: wc.QPN, WRID: wc.ID, Status: wc.Status, VendorErr: wc.VendorErr}
}
