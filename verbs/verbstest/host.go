package verbstest

import (
	"sync/atomic"
	"syscall"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// Host is a machine with HCAs.
type Host struct {
	f        *Fabric
	index    int
	hcas     []*HCA
	refusals map[string]refusal
	refusing atomic.Bool
	lacks    map[driver.Symbol]bool
	noRDMA   bool
	lockable uint64 // bytes; 0: no limit
	left     Left
}

type refusal struct {
	after int
	errno syscall.Errno
}

// Left counts what is open on a host: what a test compares before and after.
type Left struct {
	Contexts, PDs, MRs, Channels, CQs, QPs int
	Registered                             uint64 // bytes
}

// Library is the host's libibverbs: package verbs as it is, over these HCAs.
func (h *Host) Library() *verbs.Library { return verbs.OpenTable(&table{h.f, h}) }

// HCA gives the HCA of an index from 0; nil where there is none.
func (h *Host) HCA(i int) *HCA {
	if i < 0 || i >= len(h.hcas) {
		return nil
	}
	return h.hcas[i]
}

// HCAs is how many there are.
func (h *Host) HCAs() int { return len(h.hcas) }

// Left counts what is open.
func (h *Host) Left() Left {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return h.left
}

// Refuse has the n-th call from now, 1 is the next, of the verb of that name (ibv_reg_mr) fail with errno, and all after it; errno 0
// ends that. ibv_post_send and ibv_post_recv are refused at the chain's first request.
func (h *Host) Refuse(verb string, n int, errno syscall.Errno) {
	h.f.set(func() {
		delete(h.refusals, verb)
		if errno != 0 {
			h.refusals[verb] = refusal{n, errno}
		}
		h.refusing.Store(len(h.refusals) > 0)
	})
}

// Lack takes a feature from the host's library.
func (h *Host) Lack(f verbs.Feature) { h.f.set(func() { h.lacks[driver.Symbol(f)] = true }) }

// NoRDMA has the host's kernel know no RDMA: Library.Devices gives verbs.ErrNoDevice.
func (h *Host) NoRDMA() { h.f.set(func() { h.noRDMA = true }) }

// Memlock limits the bytes that can be registered at a time, as RLIMIT_MEMLOCK does; 0: no limit.
func (h *Host) Memlock(bytes uint64) { h.f.set(func() { h.lockable = bytes }) }

// refused is asked by every call, under the fabric's lock.
func (h *Host) refused(verb string) syscall.Errno {
	if len(h.refusals) == 0 {
		return 0
	}
	r, there := h.refusals[verb]
	if !there {
		return 0
	}
	if r.after > 1 {
		r.after--
		h.refusals[verb] = r
		return 0
	}
	return r.errno
}
