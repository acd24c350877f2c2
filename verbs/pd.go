package verbs

import (
	"fmt"
	"math"
	"os"
	"syscall"
)

// PD is a protection domain: queue pairs reach the memory that is registered in their own.
type PD struct{ object }

// NewPD makes a protection domain.
//
// Implements: struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
func (c *Context) NewPD() (*PD, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.live.RUnlock()
	h, e := c.t.AllocPD(c.h)
	if e != 0 {
		return nil, c.fault("ibv_alloc_pd", e)
	}
	pd := &PD{object{c: c, what: "protection domain", h: h}}
	c.adopt(pd)
	return pd, nil
}

// Close fails with EBUSY while MRs or queue pairs of the domain are open.
//
// Implements: int ibv_dealloc_pd(struct ibv_pd *pd)
func (pd *PD) Close() error { return pd.end(pd, "ibv_dealloc_pd", pd.c.t.FreePD) }

// Context is the device's.
func (pd *PD) Context() *Context { return pd.c }

// Access says what may be done with registered memory. Local reads always may.
type Access uint32

// What may be done. A peer's write needs AccessLocalWrite too.
const (
	AccessLocalWrite      Access = 1
	AccessRemoteWrite     Access = 1 << 1
	AccessRemoteRead      Access = 1 << 2
	AccessRemoteAtomic    Access = 1 << 3
	AccessRelaxedOrdering Access = 1 << 20 // writes may land in any order: never for memory that holds flags
)

// MR is registered memory.
type MR struct {
	object
	keys  keys
	addr  uint64
	bytes int
	m     *Memory
}

type keys struct{ lkey, rkey uint32 }

// Register lets the device at m, until the MR's Close; m cannot be closed before. Errors: *MemlockError, which says how to raise
// the limit.
//
// Implements: struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
func (pd *PD) Register(m *Memory, access Access) (*MR, error) {
	return pd.registerWithin(m, m.Addr(), m.n, access)
}

// registerWithin is Register of what of m begins at addr, a page's address, in whole pages.
func (pd *PD) registerWithin(m *Memory, addr uintptr, bytes int, access Access) (*MR, error) {
	page := os.Getpagesize()
	if addr%uintptr(page) != 0 {
		return nil, invalid("registering %d bytes at %#x: they must begin where a page of %d bytes does", bytes, addr, page)
	}
	if _, _, err := m.hold(); err != nil {
		return nil, err
	}
	mr, err := pd.register(&MR{addr: uint64(addr), bytes: bytes, m: m}, (bytes+page-1)/page*page, access)
	if err != nil {
		m.release()
	}
	return mr, err
}

// RegisterPages registers memory of somebody else's, such as HIP's pinned host memory: whole pages that no one else has anything in,
// and that are there until the MR's Close. Never Go's heap: a page of it is everybody's, and the collector knows no device.
// Errors: as Register.
//
// Implements: struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
func (pd *PD) RegisterPages(addr uintptr, bytes int, access Access) (*MR, error) {
	page := os.Getpagesize()
	if addr == 0 || bytes < 1 || addr%uintptr(page) != 0 || bytes%page != 0 {
		return nil, invalid("registering %d bytes at %#x: only whole pages of %d bytes can be", bytes, addr, page)
	}
	return pd.register(&MR{addr: uint64(addr), bytes: bytes}, bytes, access)
}

// register makes mr of so many bytes from its address on.
func (pd *PD) register(mr *MR, bytes int, access Access) (*MR, error) {
	if err := pd.enter(); err != nil {
		return nil, err
	}
	defer pd.mu.Unlock()
	r, e := pd.c.t.Register(pd.h, uintptr(mr.addr), bytes, uint32(access))
	if e != 0 {
		err := &Error{Call: "ibv_reg_mr", Device: pd.c.device.d.Name, Errno: e}
		return nil, fmt.Errorf("verbs: registering %d bytes: %w", bytes, memlocked(err, bytes))
	}
	mr.c, mr.what, mr.h, mr.keys = pd.c, "MR", r.Handle, keys{r.LKey, r.RKey}
	pd.c.adopt(mr)
	return mr, nil
}

// RegisterDMABuf registers bytes of a dma-buf from offset on, so that a device reaches another's memory. The MR's addresses start at
// iova, which must lie in its page as offset does. fd may be closed afterwards. Errors: *UnsupportedError without FeatureDMABuf, and
// where the device or its driver does not take them.
//
// Implements: struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
func (pd *PD) RegisterDMABuf(fd int, offset uint64, bytes int, iova uint64, access Access) (*MR, error) {
	if !pd.c.device.lib.Has(FeatureDMABuf) {
		return nil, &UnsupportedError{Device: pd.c.t.Library(), Feature: "no registration of a dma-buf", Need: "rdma-core 34 or newer has it"}
	}
	if bytes < 1 || fd < 0 || fd > math.MaxInt32 {
		return nil, invalid("registering %d bytes of dma-buf %d: at least 1 byte, and of a descriptor", bytes, fd)
	}
	if err := pd.enter(); err != nil {
		return nil, err
	}
	defer pd.mu.Unlock()
	r, e := pd.c.t.RegisterDMABuf(pd.h, fd, offset, bytes, iova, uint32(access))
	switch e {
	case 0:
	case syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EPROTONOSUPPORT:
		return nil, &UnsupportedError{Device: pd.c.device.d.Name, Feature: "its driver registers no dma-buf", Need: "Linux 5.12 or newer and a device such as mlx5 have it"}
	default:
		return nil, fmt.Errorf("verbs: registering %d bytes of a dma-buf: %w", bytes, pd.c.fault("ibv_reg_dmabuf_mr", e))
	}
	mr := &MR{object: object{c: pd.c, what: "MR", h: r.Handle}, keys: keys{r.LKey, r.RKey}, addr: iova, bytes: bytes}
	pd.c.adopt(mr)
	return mr, nil
}

// Close takes the memory from the device. Work that still uses it fails.
//
// Implements: int ibv_dereg_mr(struct ibv_mr *mr)
func (mr *MR) Close() error {
	return mr.end(mr, "ibv_dereg_mr", func(h uintptr) syscall.Errno {
		e := mr.c.t.Deregister(h)
		if e == 0 {
			mr.m.release()
		}
		return e
	})
}

// LKey is the memory's key in our own requests.
func (mr *MR) LKey() uint32 { return mr.keys.lkey }

// RKey is the memory's key in a peer's requests.
func (mr *MR) RKey() uint32 { return mr.keys.rkey }

// Addr is what requests call the first byte.
func (mr *MR) Addr() uint64 { return mr.addr }

// Len is in bytes.
func (mr *MR) Len() int { return mr.bytes }

// SGE is n bytes of the memory from offset on. The device refuses what is not within it: StatusLocalProtection.
func (mr *MR) SGE(offset int, n uint32) SGE {
	return SGE{Addr: mr.addr + uint64(offset), Length: n, LKey: mr.keys.lkey}
}
