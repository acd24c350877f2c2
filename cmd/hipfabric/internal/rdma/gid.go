package rdma

import (
	"net/netip"
	"slices"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

// addresses reads the GIDs of a port as addresses, finds their prefixes, and chooses the one that a group takes.
func (s *System) addresses(h *Host, p *Port) {
	for i := range p.GIDs {
		g := &p.GIDs[i]
		a, err := netip.ParseAddr(g.GID)
		if err != nil {
			continue
		}
		g.Address = a.Unmap().String()
		g.Bits = bits(h.Interfaces, g.NetDev, a.Unmap())
	}
	p.choose()
}

// bits is the length of an address's prefix on its interface, or on any where that is not told.
func bits(list []machine.Interface, netdev string, a netip.Addr) int {
	for _, i := range list {
		if netdev != "" && i.Name != netdev {
			continue
		}
		for _, text := range i.Addresses {
			if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Unmap() == a {
				return p.Bits()
			}
		}
	}
	return 0
}

// The ranks of addresses, the best last.
const (
	unfit = iota
	linkLocal
	global
	mapped
)

func (g GID) rank() int {
	a, err := netip.ParseAddr(g.Address)
	switch {
	case err != nil || g.Type != "RoCE v2" || a.IsUnspecified():
		return unfit
	case a.Is4() && !a.IsLinkLocalUnicast():
		return mapped
	case a.IsLinkLocalUnicast():
		return linkLocal
	}
	return global
}

// choose takes the GID by type and address, and of equals the one whose index is lowest.
func (p *Port) choose() {
	p.Chosen, p.Why = -1, ""
	best := unfit
	for _, g := range p.GIDs {
		if r := g.rank(); r > best {
			best, p.Chosen = r, g.Index
		}
	}
	p.Why = []string{"", "link-local, as there is no other", "global IPv6, as there is no IPv4", "IPv4"}[best]
}

// gid is the port's of an index.
func (p Port) gid(index int) (GID, bool) {
	i := slices.IndexFunc(p.GIDs, func(g GID) bool { return g.Index == index })
	if i < 0 {
		return GID{}, false
	}
	return p.GIDs[i], true
}

// Usable says that a group can have queue pairs there.
func (p Port) Usable() bool { return p.Active() && p.Link == "Ethernet" && p.Chosen >= 0 }

// addr is the GID as an IP address, without zone.
func (g GID) addr() netip.Addr {
	a, _ := netip.ParseAddr(g.Address)
	return a.WithZone("")
}

// prefix is the GID's net; zero when it is not known.
func (g GID) prefix() netip.Prefix {
	if a := g.addr(); a.IsValid() && g.Bits > 0 && g.Bits <= a.BitLen() {
		return netip.PrefixFrom(a, g.Bits).Masked()
	}
	return netip.Prefix{}
}
