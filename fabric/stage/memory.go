package stage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
)

// registry knows the memory that the path gave, and what the engine has registered with it.
type registry struct {
	shared bool                   // the CPU may read and write what it can touch in place of a copy
	list   atomic.Pointer[[]span] // by address
	mu     sync.Mutex             // for changes
}

// span is one memory's place in the list. Registrations may overlap, so reach is the last end of this one and all before it.
type span struct {
	m                *memory
	from, end, reach uintptr
}

// find gives the memory that [p, p+n) is all in, nil where there is none.
func (r *registry) find(p fabric.DevPtr, n int) *memory {
	list := r.list.Load()
	if list == nil || n == 0 {
		return nil
	}
	end := uintptr(p) + uintptr(n)
	for i := sort.Search(len(*list), func(i int) bool { return (*list)[i].from > uintptr(p) }) - 1; i >= 0 && (*list)[i].reach >= end; i-- {
		if (*list)[i].end >= end {
			return (*list)[i].m
		}
	}
	return nil
}

// view gives memory as the CPU sees it, where that may read and write it in place of a copy; else nil.
func (r *registry) view(p fabric.DevPtr, n int) []byte {
	if !r.shared {
		return nil
	}
	if m := r.find(p, n); m != nil {
		return m.host[uintptr(p)-m.device:][:n:n]
	}
	return nil
}

// gave says that memory is the path's own, and so not freed.
func (r *registry) gave(p fabric.DevPtr, n int) bool {
	m := r.find(p, n)
	return m != nil && m.free != nil
}

// change stores another list: f's of a copy, in order.
func (r *registry) change(f func([]span) []span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []span
	if old := r.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = f(list)
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	reach := uintptr(0)
	for i := range list {
		reach = max(reach, list[i].end)
		list[i].reach = reach
	}
	r.list.Store(&list)
}

func (r *registry) add(m *memory) {
	r.change(func(l []span) []span { return append(l, span{m: m, from: m.device, end: m.device + uintptr(m.n)}) })
}

func (r *registry) remove(m *memory) {
	r.change(func(l []span) []span { return slices.DeleteFunc(l, func(s span) bool { return s.m == m }) })
}

// memory is what Alloc and Register give.
type memory struct {
	t      *Transport
	device uintptr
	host   []byte // nil where the CPU cannot touch it
	n      int
	free   func() error // nil: the engine's own
	once   sync.Once
	err    error
}

func (m *memory) Device() fabric.DevPtr { return fabric.DevPtr(m.device) }
func (m *memory) Len() int              { return m.n }
func (m *memory) Bytes() []byte         { return m.host }

// Close gives the memory back. After a failure it waits for the copies that may still land there, as Transport.Close does.
func (m *memory) Close() error {
	m.once.Do(func() {
		m.t.registered.remove(m)
		if m.free == nil {
			return
		}
		if m.t.failed.Load() != nil && !m.t.hasDrained(closeWithin) {
			m.err = fmt.Errorf("stage: %d bytes at %#x on %v are not freed: a copy may still land there", m.n, m.device, m.t.d)
			return
		}
		m.err = m.free()
	})
	return m.err
}

// Alloc gives memory that this path moves with the fewest copies: on a device that shares its memory with the CPU, pinned
// memory that the wire reads and writes in place; else the device's own where the driver can, else pinned memory. Not
// while a stream captures.
func (t *Transport) Alloc(n int) (fabric.DeviceMemory, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	size := max(n, 1) // so that it has an address
	if l, ok := t.d.(Launcher); ok && !t.d.Integrated() {
		p, err := l.AllocDevice(size)
		if err != nil {
			return nil, t.allocErr(n, err)
		}
		m := &memory{t: t, device: p, n: n, free: func() error { return l.FreeDevice(p) }}
		t.registered.add(m)
		return m, nil
	}
	host, device, err := t.d.AllocHost(pages(size))
	if err != nil {
		return nil, t.allocErr(n, err)
	}
	back := t.lend("memory", host)
	m := &memory{t: t, device: device, host: host[:n:n], n: n, free: func() error { return errors.Join(back(), t.d.FreeHost(host)) }}
	t.registered.add(m)
	return m, nil
}

func (t *Transport) allocErr(n int, err error) error {
	return fabric.Unsupportedf("%v gives no %d bytes: %v", t.d, n, err)
}

// Register lets calls use pinned memory of the engine's in place where the device shares its memory with the CPU; elsewhere it
// changes nothing. Close the result, which frees nothing, before the memory is freed.
func (t *Transport) Register(host []byte, device fabric.DevPtr) (fabric.DeviceMemory, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	pinned, err := t.d.Inspect(uintptr(device), len(host))
	if err == nil && !pinned {
		err = errors.New("it is device memory")
	}
	if err != nil {
		return nil, fabric.Invalidf("%d bytes at %#x are no pinned memory of %v: %v", len(host), device, t.d, err)
	}
	m := &memory{t: t, device: uintptr(device), host: host, n: len(host)}
	t.registered.add(m)
	return m, nil
}
