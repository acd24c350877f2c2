package verbstest

import (
	"net/netip"
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// route gives our address towards a peer's, as the kernel's address resolution does when a queue pair becomes ready to receive.
func (h *HCA) route(a *driver.QPAttr) (driver.GID, syscall.Errno) {
	own, there := h.at(a.SGIDIndex)
	if !there || a.Global == 0 {
		return driver.GID{}, syscall.EINVAL
	}
	if h.net == nil || h.down {
		return driver.GID{}, syscall.ENETUNREACH
	}
	from, to := netip.AddrFrom16(own.GID).Unmap(), netip.AddrFrom16(a.GID).Unmap()
	if from.Is4() != to.Is4() || !netip.PrefixFrom(from, prefixBits(from)).Masked().Contains(to) {
		return driver.GID{}, syscall.ENETUNREACH
	}
	for _, o := range h.net.hcas {
		for _, g := range o.gids {
			if g.GID == a.GID {
				return own, 0
			}
		}
	}
	return driver.GID{}, syscall.EHOSTUNREACH
}

// reach gives the peer's queue pair if a packet of so many bytes would come there now and be taken.
func (q *qp) reach(bytes int) *qp {
	n := q.h.net
	if n == nil || n.dead || q.h.down || q.h.mute || bytes > n.mtu {
		return nil
	}
	for _, o := range n.hcas {
		if !o.hears(q.attr.GID, q.sgid.Type) {
			continue
		}
		if o.down || o.mute || o.dead || q.f.cuts[[2]int{min(q.h.host.index, o.host.index), max(q.h.host.index, o.host.index)}] {
			return nil
		}
		p := o.qps[q.attr.DestQPN]
		if p == nil || p.state != stateRTR && p.state != stateRTS || p.attr.DestQPN != q.number || p.attr.GID != q.sgid.GID {
			return nil
		}
		if p.attr.RQPSN != q.attr.SQPSN || !q.samePartition(p) {
			return nil
		}
		return p
	}
	return nil
}

// samePartition: equal keys of which one is a full member's.
func (q *qp) samePartition(p *qp) bool {
	i, j := int(q.attr.PKeyIndex), int(p.attr.PKeyIndex)
	if i >= len(q.h.pkeys) || j >= len(p.h.pkeys) {
		return false
	}
	a, b := q.h.pkeys[i], p.h.pkeys[j]
	return a&0x7fff == b&0x7fff && (a|b)&0x8000 != 0
}
