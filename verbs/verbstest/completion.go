package verbstest

import (
	"maps"
	"sync/atomic"
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

type channel struct {
	c      *device
	events []uintptr
	bell   bell
	left   int
}

type cq struct {
	handle    uintptr
	c         *device
	ch        *channel
	capacity  int
	entries   []entry
	some      atomic.Bool // of entries
	broken    bool        // it overflowed
	armed     bool
	solicited bool
	qps       map[*qp]int
}

// entry is a completion, with the slots of its queue pair's that polling it frees.
type entry struct {
	wc    driver.WC
	q     *qp
	life  int
	sends int
	recvs int
}

func (t *table) CreateChannel(context uintptr) (handle uintptr, fd int, e syscall.Errno) {
	if e := t.call("ibv_create_comp_channel"); e != 0 {
		return 0, -1, e
	}
	defer t.f.mu.Unlock()
	c, e := t.alive(context)
	if e != 0 {
		return 0, -1, e
	}
	b, e := newBell()
	if e != 0 {
		return 0, -1, e
	}
	c.left++
	t.h.left.Channels++
	return t.f.enter(&channel{c: c, bell: b}), b.fd(), 0
}

func (t *table) DestroyChannel(handle uintptr) syscall.Errno {
	if e := t.call("ibv_destroy_comp_channel"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	ch, e := find[*channel](t, handle)
	if e != 0 {
		return e
	}
	if ch.left > 0 {
		return syscall.EBUSY
	}
	ch.bell.close()
	ch.c.left--
	t.h.left.Channels--
	delete(t.f.objects, handle)
	return 0
}

func (t *table) CQEvent(handle uintptr) (uintptr, syscall.Errno) {
	if e := t.call("ibv_get_cq_event"); e != 0 {
		return 0, e
	}
	defer t.f.mu.Unlock()
	ch, e := find[*channel](t, handle)
	if e != 0 {
		return 0, e
	}
	if len(ch.events) == 0 {
		return 0, syscall.EAGAIN
	}
	cq := ch.events[0]
	ch.events = ch.events[1:]
	if len(ch.events) == 0 {
		ch.bell.silence()
	}
	return cq, 0
}

func (t *table) CreateCQ(context uintptr, entries int, of uintptr, vector int) (handle uintptr, capacity int, e syscall.Errno) {
	if e := t.call("ibv_create_cq"); e != 0 {
		return 0, 0, e
	}
	defer t.f.mu.Unlock()
	c, e := t.alive(context)
	if e != 0 {
		return 0, 0, e
	}
	var ch *channel
	if of != 0 {
		if ch, e = find[*channel](t, of); e == 0 && ch.c != c {
			e = syscall.EINVAL
		}
	}
	if e != 0 || entries < 1 || entries > 32767 || vector != 0 {
		return 0, 0, syscall.EINVAL
	}
	q := &cq{c: c, ch: ch, capacity: entries, qps: map[*qp]int{}}
	q.handle = t.f.enter(q)
	t.f.polled(func(cqs map[uintptr]*cq) { cqs[q.handle] = q })
	if ch != nil {
		ch.left++
	}
	c.left++
	t.h.left.CQs++
	return q.handle, entries, 0
}

func (t *table) DestroyCQ(handle uintptr) syscall.Errno {
	if e := t.call("ibv_destroy_cq"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	q, e := find[*cq](t, handle)
	if e != 0 {
		return e
	}
	if len(q.qps) > 0 {
		return syscall.EBUSY
	}
	if q.ch != nil {
		q.ch.left--
	}
	q.c.left--
	t.h.left.CQs--
	delete(t.f.objects, handle)
	t.f.polled(func(cqs map[uintptr]*cq) { delete(cqs, handle) })
	return 0
}

func (t *table) Arm(handle uintptr, solicited bool) syscall.Errno {
	if e := t.call("ibv_req_notify_cq"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	q, e := find[*cq](t, handle)
	if e != 0 {
		return e
	}
	q.solicited = solicited && (q.solicited || !q.armed) // the wider of two
	q.armed = true
	return 0
}

// polled changes what polling without the lock finds.
func (f *Fabric) polled(change func(map[uintptr]*cq)) {
	cqs := map[uintptr]*cq{}
	if now := f.cqs.Load(); now != nil {
		cqs = maps.Clone(*now)
	}
	change(cqs)
	f.cqs.Store(&cqs)
}

// empty says, without the lock, that a poll finds nothing: who spins is in nobody's way.
func (t *table) empty(handle uintptr) bool {
	cqs := t.f.cqs.Load()
	if cqs == nil || t.h.refusing.Load() {
		return false
	}
	q := (*cqs)[handle]
	return q != nil && !q.some.Load()
}

func (t *table) Poll(handle uintptr, wc []driver.WC) (int, syscall.Errno) {
	if t.empty(handle) {
		if !t.f.busy.Load() || !t.f.mu.TryLock() { // who has it works
			return 0, 0
		}
	} else if e := t.call("ibv_poll_cq"); e != 0 {
		return 0, e
	}
	defer t.f.mu.Unlock()
	q, e := find[*cq](t, handle)
	if e != 0 {
		return 0, e
	}
	t.f.help()
	n := min(len(wc), len(q.entries))
	for i, e := range q.entries[:n] {
		wc[i] = e.wc
		if e.q.life == e.life {
			e.q.sends -= e.sends
			e.q.recvs -= e.recvs
		}
	}
	q.entries = q.entries[n:]
	q.some.Store(len(q.entries) > 0)
	return n, 0
}

// push adds a completion. One that has no room breaks the CQ, and all queue pairs that complete there.
func (q *cq) push(e entry, solicited bool) {
	if q.broken {
		return
	}
	if len(q.entries) == q.capacity {
		q.broken = true
		q.c.tell(driver.Async{Type: eventCQError, Handle: q.handle})
		for _, o := range q.c.h.ordered() {
			if q.qps[o] > 0 {
				o.stop()
			}
		}
		return
	}
	q.entries = append(q.entries, e)
	q.some.Store(true)
	if !q.armed || q.solicited && !solicited && e.wc.Status == 0 || q.ch == nil {
		return
	}
	q.armed = false
	q.ch.events = append(q.ch.events, q.handle)
	if len(q.ch.events) == 1 {
		q.ch.bell.ring()
	}
}
