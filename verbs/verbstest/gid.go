package verbstest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// plug puts the port into a net and gives it addresses: a table with empty slots, where the IPv4 GIDs' indexes differ by host and
// HCA, as they do between hosts whose addresses came at different times.
func (h *HCA) plug(net *network, n int) {
	shared := 0
	for _, o := range net.hcas {
		if o.host == h.host {
			shared++
		}
	}
	net.hcas = append(net.hcas, h)
	h.net, h.netIndex = net, n
	last := byte(h.host.index + 1 + 32*shared)
	mapped := netip.AddrFrom4([4]byte{10, 77, byte(n), last}).As16()
	at := uint32(2 + 2*((h.host.index+h.index)%4))
	h.gids = []driver.GID{
		h.slot(0, 1, h.linkLocal()), h.slot(1, 2, h.linkLocal()), h.slot(at, 1, mapped), h.slot(at+1, 2, mapped),
	}
}

func (h *HCA) slot(index, kind uint32, gid [16]byte) driver.GID {
	return driver.GID{GID: gid, Index: index, Port: 1, Type: kind, NetDev: h.NetDev()}
}

func (h *HCA) linkLocal() (gid [16]byte) {
	gid[0], gid[1] = 0xfe, 0x80
	binary.BigEndian.PutUint64(gid[8:], h.guid()^1<<57)
	return gid
}

// Addr is the port's IPv4 address with its net's prefix length; zero where the GIDs have none.
func (h *HCA) Addr() netip.Prefix {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	for _, g := range h.gids {
		if a := netip.AddrFrom16(g.GID).Unmap(); a.Is4() {
			return netip.PrefixFrom(a, prefixBits(a))
		}
	}
	return netip.Prefix{}
}

// Addresses lists the addresses that a network interface of the host's GIDs has, each once, with the prefix lengths of its subnets: 24
// bits of an IPv4 one, 64 of others. Errors: the host has no such interface.
func (h *Host) Addresses(netdev string) ([]netip.Prefix, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	var all []netip.Prefix
	there := false
	for _, c := range h.hcas {
		there = there || c.NetDev() == netdev
		for _, g := range c.gids {
			if g.NetDev != netdev {
				continue
			}
			there = true
			a := netip.AddrFrom16(g.GID).Unmap()
			if p := netip.PrefixFrom(a, prefixBits(a)); !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	if !there {
		return nil, fmt.Errorf("verbstest: host %d has no network interface %q", h.index, netdev)
	}
	return all, nil
}

func prefixBits(a netip.Addr) int {
	if a.Is4() {
		return 24
	}
	return 64
}

// GIDs replaces the port's table, whose empty slots are not given, and tells contexts. Queue pairs keep the address they were
// connected with. Entries' ports are 1, their indexes 0 to 15, each once.
func (h *HCA) GIDs(table ...verbs.GIDEntry) error {
	var gids []driver.GID
	seen := map[int]bool{}
	for _, e := range table {
		if e.Index < 0 || e.Index >= gidSlots || seen[e.Index] {
			return fmt.Errorf("verbstest: GID %s has index %d: 0 to %d, each once", e.GID, e.Index, gidSlots-1)
		}
		seen[e.Index] = true
		gids = append(gids, driver.GID{GID: e.GID, Index: uint32(e.Index), Port: 1, Type: uint32(e.Type), NetDev: e.NetDev, Interface: uint32(max(e.Interface, 0))})
	}
	h.f.set(func() { h.readdress(gids) })
	return nil
}

func (h *HCA) readdress(gids []driver.GID) {
	slices.SortFunc(gids, func(a, b driver.GID) int { return int(a.Index) - int(b.Index) })
	h.gids = gids
	h.event(eventGIDChange)
}

// LinkLocalOnly leaves the port's link-local GIDs, of RoCE v1 and v2.
func (h *HCA) LinkLocalOnly() {
	h.keep(func(g driver.GID) bool { return netip.AddrFrom16(g.GID).IsLinkLocalUnicast() })
}

// RoCEv1Only leaves the port's GIDs of RoCE v1.
func (h *HCA) RoCEv1Only() { h.keep(func(g driver.GID) bool { return g.Type == 1 }) }

// NoGIDs empties the port's table.
func (h *HCA) NoGIDs() { h.keep(func(driver.GID) bool { return false }) }

func (h *HCA) keep(want func(driver.GID) bool) {
	h.f.set(func() {
		var gids []driver.GID
		for _, g := range h.gids {
			if want(g) {
				gids = append(gids, g)
			}
		}
		h.readdress(gids)
	})
}

// Drift moves every GID by one slot, the last to the first, as addresses that go and come do.
func (h *HCA) Drift() {
	h.f.set(func() {
		gids := slices.Clone(h.gids)
		for i := range gids {
			gids[i].Index = (gids[i].Index + 1) % gidSlots
		}
		h.readdress(gids)
	})
}

// at gives the table's slot.
func (h *HCA) at(index uint32) (driver.GID, bool) {
	for _, g := range h.gids {
		if g.Index == index {
			return g, true
		}
	}
	return driver.GID{}, false
}

// hears says whether a packet for the address comes in here.
func (h *HCA) hears(gid [16]byte, kind uint32) bool {
	for _, g := range h.gids {
		if g.GID == gid && g.Type == kind {
			return true
		}
	}
	return false
}
