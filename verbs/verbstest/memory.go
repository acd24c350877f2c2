package verbstest

import (
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

type pd struct {
	c    *device
	left int
}

type mr struct {
	pd          *pd
	addr, bytes uint64
	access      uint32
	key         uint32
}

// bits of enum ibv_access_flags.
const (
	accessLocalWrite   = 1
	accessRemoteWrite  = 1 << 1
	accessRemoteRead   = 1 << 2
	accessRemoteAtomic = 1 << 3
	accessRelaxed      = 1 << 20
	accessOptional     = 0x3ff << 20
	accessKnown        = 0xf | accessOptional
)

func (t *table) AllocPD(context uintptr) (uintptr, syscall.Errno) {
	if e := t.call("ibv_alloc_pd"); e != 0 {
		return 0, e
	}
	defer t.f.mu.Unlock()
	c, e := t.alive(context)
	if e != 0 {
		return 0, e
	}
	c.left++
	t.h.left.PDs++
	return t.f.enter(&pd{c: c}), 0
}

func (t *table) FreePD(handle uintptr) syscall.Errno {
	if e := t.call("ibv_dealloc_pd"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	p, e := find[*pd](t, handle)
	if e != 0 {
		return e
	}
	if p.left > 0 {
		return syscall.EBUSY
	}
	p.c.left--
	t.h.left.PDs--
	delete(t.f.objects, handle)
	return 0
}

func (t *table) Register(handle, addr uintptr, bytes int, access uint32) (driver.MR, syscall.Errno) {
	if e := t.call("ibv_reg_mr"); e != 0 {
		return driver.MR{}, e
	}
	defer t.f.mu.Unlock()
	p, e := find[*pd](t, handle)
	if e != 0 {
		return driver.MR{}, e
	}
	if t.h.lacks[driver.SymbolRegisterOrd] {
		access &^= accessOptional
	}
	h := p.c.h
	switch {
	case h.dead:
		return driver.MR{}, syscall.EIO
	case addr == 0 || bytes < 1 || access&^accessKnown != 0 || uint64(addr)+uint64(bytes) < uint64(addr):
		return driver.MR{}, syscall.EINVAL
	case access&(accessRemoteWrite|accessRemoteAtomic) != 0 && access&accessLocalWrite == 0:
		return driver.MR{}, syscall.EINVAL
	case t.h.lockable != 0 && t.h.left.Registered+uint64(bytes) > t.h.lockable:
		return driver.MR{}, syscall.ENOMEM
	case !mapped(addr, bytes):
		return driver.MR{}, syscall.EFAULT
	}
	key := h.rng.Uint32()
	for h.keys[key] != nil || key == 0 {
		key = h.rng.Uint32()
	}
	m := &mr{pd: p, addr: uint64(addr), bytes: uint64(bytes), access: access, key: key}
	h.keys[key] = m
	if access&accessRelaxed != 0 {
		h.relaxed++
	}
	p.left++
	p.c.left++
	t.h.left.MRs++
	t.h.left.Registered += m.bytes
	return driver.MR{Handle: t.f.enter(m), LKey: key, RKey: key}, 0
}

// RegisterDMABuf refuses as rxe does: no other device's memory is here.
func (t *table) RegisterDMABuf(uintptr, int, uint64, int, uint64, uint32) (driver.MR, syscall.Errno) {
	if e := t.call("ibv_reg_dmabuf_mr"); e != 0 {
		return driver.MR{}, e
	}
	defer t.f.mu.Unlock()
	return driver.MR{}, syscall.EOPNOTSUPP
}

func (t *table) Deregister(handle uintptr) syscall.Errno {
	if e := t.call("ibv_dereg_mr"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	m, e := find[*mr](t, handle)
	if e != 0 {
		return e
	}
	if m.access&accessRelaxed != 0 {
		m.pd.c.h.relaxed--
	}
	delete(m.pd.c.h.keys, m.key)
	delete(t.f.objects, handle)
	m.pd.left--
	m.pd.c.left--
	t.h.left.MRs--
	t.h.left.Registered -= m.bytes
	return 0
}

// within gives the registered memory of a key, if the domain may use all of the range so.
func (p *pd) within(key uint32, addr, bytes uint64, access uint32) *mr {
	m := p.c.h.keys[key]
	if m == nil || m.pd != p || m.access&access != access {
		return nil
	}
	if addr < m.addr || bytes > m.bytes || addr-m.addr > m.bytes-bytes {
		return nil
	}
	return m
}

// local says whether all entries may be read, or written.
func (p *pd) local(sge []driver.SGE, access uint32) bool {
	for _, s := range sge {
		if s.Length > 0 && p.within(s.LKey, s.Addr, uint64(s.Length), access) == nil {
			return false
		}
	}
	return true
}
