package rdma

import (
	"cmp"
	"net/netip"
	"slices"
)

const maxRails = 16 // that are tried

// place is a port of a host.
type place struct {
	device string
	port   *Port
}

// usable are the ports that a group could use, in order.
func (h *Host) usable() []place {
	var list []place
	for i := range h.Devices {
		d := &h.Devices[i]
		for j := range d.Ports {
			if p := &d.Ports[j]; d.Listed && d.Failed == "" && !d.Foreign && p.Usable() {
				list = append(list, place{d.Name, p})
			}
		}
	}
	return list
}

// rails are the pairs of ports whose addresses say that they reach each other: of each pair the best addresses whose subnets meet.
// Ports that have link-local addresses alone, which say nothing, are paired with all such.
func rails(near, far *Host) []Rail {
	list := []Rail{}
	var guesses []Rail
	for _, n := range near.usable() {
		for _, f := range far.usable() {
			a, b, ok := meet(n.port, f.port)
			if !ok {
				continue
			}
			r := Rail{Near: n.end(a), Far: f.end(b), MTU: smaller(n.port.MTU, f.port.MTU), Trips: []Trips{}}
			if a.rank() == linkLocal {
				r.Guess = true
				guesses = append(guesses, r)
				continue
			}
			list = append(list, r)
		}
	}
	for _, r := range guesses {
		if !slices.ContainsFunc(list, func(o Rail) bool { return !o.Guess && (o.Near.at() == r.Near.at() || o.Far.at() == r.Far.at()) }) {
			list = append(list, r)
		}
	}
	return list[:min(len(list), maxRails)]
}

func smaller(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (p place) end(g GID) RailEnd {
	return RailEnd{Device: p.device, Port: p.port.Number, Index: g.Index, GID: g.Address, MTU: p.port.MTU, NetDev: p.port.NetDev}
}

// at names the port.
func (e RailEnd) at() [2]any { return [2]any{e.Device, e.Port} }

// meet finds the best two addresses that share the subnet of the longer prefix. Link-local ones, which share theirs with all, do
// where neither port has others.
func meet(a, b *Port) (GID, GID, bool) {
	for _, x := range a.best() {
		for _, y := range b.best() {
			if x.rank() == y.rank() && x.shares(y) && (x.rank() > linkLocal || a.best()[0].rank() == linkLocal && b.best()[0].rank() == linkLocal) {
				return x, y, true
			}
		}
	}
	return GID{}, GID{}, false
}

// best are the addresses that can be used, the best first, the chosen one before its equals.
func (p *Port) best() []GID {
	list := slices.DeleteFunc(slices.Clone(p.GIDs), func(g GID) bool { return g.rank() == unfit })
	slices.SortStableFunc(list, func(a, b GID) int { return cmp.Compare(b.rank(), a.rank()) })
	return list
}

func (g GID) shares(o GID) bool {
	if g.rank() == linkLocal {
		return true
	}
	a, b := g.addr(), o.addr()
	longer := max(g.Bits, o.Bits) // where an address is in another network namespace its prefix is not known, and the other's has to do
	if longer == 0 || a.BitLen() != b.BitLen() || longer > a.BitLen() {
		return false
	}
	return netip.PrefixFrom(a, longer).Contains(b)
}
