package rdma

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"time"

	"github.com/hipfabric/hipfabric/verbs"
)

const (
	smallBytes = 16
	largeBytes = 64 << 10 // many full packets at any MTU
	receives   = 4
	spinTime   = 200 * time.Microsecond // many times what a NIC takes
)

// end is a queue pair with memory: half of it is sent from, into the other half a peer writes.
type end struct {
	ctx     *verbs.Context
	channel *verbs.Channel
	cq      *verbs.CQ
	mem     *verbs.Memory
	mr      *verbs.MR
	qp      *verbs.QP
	port    int
	gid     int
	psn     uint32
	addr    verbs.GID

	to   Door
	wcs  [8]verbs.WC
	busy bool     // what was sent last has not completed
	came []uint32 // immediates of messages that were not looked at yet
}

// Door is what a peer must know to write to an end.
type Door struct {
	QPN  uint32 `json:"qpn"`
	PSN  uint32 `json:"psn"`
	GID  string `json:"gid"`
	Addr uint64 `json:"addr"`
	RKey uint32 `json:"rkey"`
}

// newEnd opens the device anew. What it made is closed where it fails.
func newEnd(lib *verbs.Library, device string, port, index int) (_ *end, err error) {
	d, err := lib.Device(device)
	if err != nil {
		return nil, err
	}
	e := &end{port: port, gid: index, psn: rand.Uint32N(1 << 24)}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.ctx, err = d.Open(); err != nil {
		return nil, err
	}
	table, err := e.ctx.GIDs()
	if err != nil {
		return nil, err
	}
	for _, g := range table {
		if g.Port == port && g.Index == index {
			e.addr = g.GID
		}
	}
	if e.addr.IsZero() {
		return nil, fmt.Errorf("port %d of %s has no GID %d any more", port, device, index)
	}
	pd, err := e.ctx.NewPD()
	if err != nil {
		return nil, err
	}
	if e.channel, err = e.ctx.NewChannel(); err != nil {
		return nil, err
	}
	if e.cq, err = e.ctx.NewCQ(verbs.CQConfig{Entries: 2 * (receives + 1), Channel: e.channel}); err != nil {
		return nil, err
	}
	if e.mem, err = verbs.NewMemory(2 * largeBytes); err != nil {
		return nil, err
	}
	if e.mr, err = pd.Register(e.mem, verbs.AccessLocalWrite|verbs.AccessRemoteWrite); err != nil {
		return nil, err
	}
	if e.qp, err = pd.NewQP(verbs.QPConfig{SendCQ: e.cq, MaxSend: 2, MaxRecv: receives, MaxInline: -1}); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *end) door() Door {
	return Door{QPN: e.qp.QPN(), PSN: e.psn, GID: e.addr.String(), Addr: e.mr.Addr(), RKey: e.mr.RKey()}
}

// connect takes the queue pair to where it can send and be sent to. The other end must be there.
func (e *end) connect(to Door, mtu int) error {
	gid, err := parseGID(to.GID)
	if err != nil {
		return err
	}
	k := verbs.Connection{Remote: verbs.Endpoint{QPN: to.QPN, PSN: to.PSN, GID: gid}, PSN: e.psn, Port: e.port, GIDIndex: e.gid, MTU: mtu}
	if err := e.qp.Init(k); err != nil {
		return err
	}
	for range receives {
		if _, err := e.qp.PostRecv(verbs.RecvWR{}); err != nil {
			return err
		}
	}
	if err := e.qp.ReadyToReceive(k); err != nil {
		return err
	}
	e.to = to
	return e.qp.ReadyToSend(k)
}

// close gives all back. Of a device that no longer answers something may stay until the process ends.
func (e *end) close() {
	if e.ctx != nil {
		_ = e.ctx.Close()
	}
	if e.mem != nil {
		_ = e.mem.Close() // refused while it is registered: then it stays, as a device may still write there
	}
}

// pattern is what message number n of a kind has at a place.
func pattern(n uint32, at int) byte { return byte(n*31 + uint32(at)*7 + 1) }

// send writes message n into the peer's memory. The last one has completed before.
func (e *end) send(ctx context.Context, n uint32, bytes int) error {
	if err := e.poll(ctx, func() bool { return !e.busy }); err != nil {
		return err
	}
	from := e.mem.Bytes()[:bytes]
	for i := range from {
		from[i] = pattern(n, i)
	}
	_, err := e.qp.PostSend(verbs.SendWR{Op: verbs.OpWriteImm, Flags: verbs.SendSignaled, SGE: []verbs.SGE{e.mr.SGE(0, uint32(bytes))},
		RemoteAddr: e.to.Addr + largeBytes, RKey: e.to.RKey, Imm: n})
	e.busy = err == nil
	return err
}

// receive waits for message n and says whether its bytes are those that were sent.
func (e *end) receive(ctx context.Context, n uint32, bytes int) (right bool, err error) {
	if err := e.poll(ctx, func() bool { return len(e.came) > 0 }); err != nil {
		return false, err
	}
	right = e.came[0] == n
	e.came = e.came[1:]
	for i, b := range e.mem.Bytes()[largeBytes:][:bytes] {
		right = right && b == pattern(n, i)
	}
	return right, nil
}

// poll takes completions until done: it spins at first, as a group's calls do, and then waits without a processor.
func (e *end) poll(ctx context.Context, done func() bool) error {
	armed, began := false, time.Now()
	for !done() {
		n, err := e.take()
		switch {
		case err != nil:
			return err
		case n > 0:
			began = time.Now()
		case time.Since(began) < spinTime:
			runtime.Gosched() // the other end may be of this process
		case !armed:
			if err := e.cq.Arm(false); err != nil {
				return err
			}
			armed = true // and look once more: what came before does not count
		default:
			if _, err := e.channel.Wait(ctx); ctx.Err() != nil {
				return fmt.Errorf("nothing came: %w", context.Cause(ctx))
			} else if err != nil {
				return err
			}
			armed = false
		}
	}
	return nil
}

// take sorts what has completed.
func (e *end) take() (int, error) {
	n, err := e.cq.Poll(e.wcs[:])
	if err != nil {
		return 0, err
	}
	for _, wc := range e.wcs[:n] {
		if err := e.cq.Err(wc); err != nil {
			return 0, err
		}
		if wc.Op != verbs.CompletedRecvWrite {
			e.busy = false
			continue
		}
		e.came = append(e.came, wc.Imm)
		if _, err := e.qp.PostRecv(verbs.RecvWR{}); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// within bounds a wait and says in the error what for.
func within(ctx context.Context, d time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%w: %s took more than %v", context.DeadlineExceeded, what, d))
}

// cause tells the kinds of failures apart.
func cause(err error) string {
	var completion *verbs.CompletionError
	var memlock *verbs.MemlockError
	is := func(codes ...syscall.Errno) bool {
		for _, c := range codes {
			if errors.Is(err, c) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		return ""
	case errors.As(err, &memlock) || is(syscall.ENOMEM):
		return CauseMemlock
	case is(syscall.EACCES, syscall.EPERM):
		return CausePermission
	case is(syscall.ENOENT, syscall.ENODEV, syscall.ENXIO):
		return CauseNode
	case errors.As(err, &completion) || errors.Is(err, context.DeadlineExceeded) || is(syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ETIMEDOUT):
		return CauseWay
	}
	return CauseOther
}
