package roce

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/hipfabric/hipfabric/fabric"
)

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// registry is the memory that all HCAs know. A call looks things up in a list that nobody changes.
type registry struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*memory] // by address
}

// memory is Alloc's.
type memory struct {
	t       *Transport
	mem     []byte
	at      uint64
	handle  uintptr
	regions []Region // by HCA
	once    sync.Once
	err     error
}

// find gives the memory that b lies in, nil where that is none of ours.
func (r *registry) find(b []byte) *memory {
	list := r.list.Load()
	if list == nil || len(b) == 0 {
		return nil
	}
	at := address(b)
	i, there := slices.BinarySearchFunc(*list, at, func(m *memory, at uint64) int { return cmp.Compare(m.at, at) })
	if !there {
		i--
	}
	if i < 0 || at+uint64(len(b)) > (*list)[i].at+uint64(len((*list)[i].mem)) {
		return nil
	}
	return (*list)[i]
}

func (r *registry) change(change func([]*memory) []*memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var now []*memory
	if list := r.list.Load(); list != nil {
		now = slices.Clone(*list)
	}
	now = change(now)
	r.list.Store(&now)
}

// Alloc gives memory that is sent from and received into without a copy, n bytes rounded up to whole pages. It locks them in RAM, and takes time
// for each. Close it when no call uses it. Errors: ErrInvalid, ErrUnsupported where the pages cannot be locked.
func (t *Transport) Alloc(n int) (fabric.Memory, error) {
	if n < 0 {
		return nil, fabric.Invalidf("memory of %d bytes: 0 or more are needed", n)
	}
	return t.alloc(n)
}

func (t *Transport) alloc(n int) (*memory, error) {
	m := &memory{t: t}
	mem, handle, err := t.d.Alloc(max(n, 1))
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes: %w", n, err)
	}
	m.handle, m.at, m.mem = handle, address(mem), mem[:n:n]
	if err := m.register(mem); err != nil {
		return nil, err
	}
	return m, nil
}

// register tells all HCAs of the memory, and the registry. Where it fails it takes all back.
func (m *memory) register(whole []byte) error {
	for _, h := range m.t.hcas {
		region, err := m.t.d.Register(h.handle, whole, true)
		if err != nil {
			return errors.Join(fmt.Errorf("memory of %d bytes: %w", len(whole), err), m.release())
		}
		m.regions = append(m.regions, region)
	}
	m.t.memory.change(func(l []*memory) []*memory {
		i, _ := slices.BinarySearchFunc(l, m.at, func(m *memory, at uint64) int { return cmp.Compare(m.at, at) })
		return slices.Insert(l, i, m)
	})
	return nil
}

// Lend has memory of the caller's, whole pages that no one else has anything in, moved as Alloc's is: HIP's pinned host memory, for one.
// Give it back, by release, before the memory is freed and when no call uses it. Errors: ErrInvalid; what registering gives.
func (t *Transport) Lend(mem []byte) (release func() error, err error) {
	if len(mem) == 0 {
		return nil, fabric.Invalidf("no memory to lend: 1 byte or more is needed")
	}
	m := &memory{t: t, mem: mem, at: address(mem)}
	if err := m.register(mem); err != nil {
		return nil, err
	}
	return m.Close, nil
}

// arena is room for what other ranks contribute to a sum: registered, so that it need not be copied; where that fails ordinary memory.
func (t *Transport) arena(n int) []byte {
	if t.room != nil {
		if err := t.room.Close(); err != nil {
			t.c.Logger.Warn("roce: memory for sums", "group", t.c.Group, "error", err)
		}
	}
	var err error
	if t.room, err = t.alloc(n + n/2); err != nil {
		t.c.Logger.Warn("roce: large sums are copied twice, since there is no registered memory for them", "group", t.c.Group, "bytes", n, "error", err)
		return make([]byte, n)
	}
	return t.room.mem
}

// Bytes is the memory, worth until Close.
func (m *memory) Bytes() []byte { return m.mem }

// Close gives the memory back.
func (m *memory) Close() error {
	m.once.Do(func() {
		m.t.memory.change(func(l []*memory) []*memory { return slices.DeleteFunc(l, func(o *memory) bool { return o == m }) })
		m.err = m.release()
		m.mem = nil
	})
	return m.err
}

func (m *memory) release() error {
	var errs []error
	for _, r := range m.regions {
		errs = append(errs, m.t.d.Close(r.Handle))
	}
	if m.handle != 0 {
		errs = append(errs, m.t.d.Close(m.handle))
	}
	return errors.Join(errs...)
}

// piece is bytes of the memory, for an HCA.
func (m *memory) piece(b []byte, h *hca) Piece {
	return Piece{Addr: address(b), Bytes: uint32(len(b)), LKey: m.regions[h.index].LKey}
}
