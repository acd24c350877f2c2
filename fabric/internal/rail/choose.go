package rail

import (
	"net/netip"
	"slices"
	"strings"
)

// Interface is one of a host's network interfaces, as far as rails care.
type Interface struct {
	Name                   string
	Index                  int
	Up, Running            bool // switched on; and with a link
	Loopback, PointToPoint bool
	Bridge                 bool // joins others, as those of containers
	Enslaved               bool // belongs to a bridge or bond, which has the address
	MTU                    int  // bytes
	Addresses              []netip.Prefix
}

func (f *Interface) String() string {
	if len(f.Addresses) == 0 {
		return f.Name + " (no address)"
	}
	texts := make([]string, len(f.Addresses))
	for i, a := range f.Addresses {
		texts[i] = a.String()
	}
	return f.Name + " (" + strings.Join(texts, " ") + ")"
}

// Address is an address of an interface and the length of its subnet's prefix, 0 when that is not known.
type Address struct {
	Interface string
	Addr      netip.Addr
	Bits      int
}

// subnet is invalid for an address that shares none with another host.
func (a Address) subnet() netip.Prefix {
	if !a.Addr.IsValid() || a.Bits <= 0 || a.Bits >= a.Addr.BitLen() || !between(a.Addr) {
		return netip.Prefix{}
	}
	p, _ := a.Addr.Prefix(a.Bits)
	return p
}

// between says whether an address tells subnets between hosts apart. Link-local ones do not: all cables have the same.
func between(a netip.Addr) bool {
	return !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsUnspecified()
}

// containers are the prefixes of the names that container and virtual machine tools give to their own interfaces.
var containers = [...]string{"docker", "br-", "cni", "flannel", "cali", "virbr", "podman", "lxc", "lxd", "kube-"}

// byDefault says whether an interface is a way to another host as far as one can tell: no bridge, member or tunnel.
func (f *Interface) byDefault() bool {
	return !f.Bridge && !f.Enslaved && !f.PointToPoint &&
		!slices.ContainsFunc(containers[:], func(prefix string) bool { return strings.HasPrefix(f.Name, prefix) })
}

// Choose gives the addresses that may be rails, in the order of the interfaces' indexes and IPv4 first: one of each
// subnet of an interface that is up, as the selectors say. Loopback and link-local ones never are. Bridges, their members,
// tunnels and the interfaces of containers are left out unless a selector asks for them by name.
func Choose(all []Interface, s *Selectors) []Address {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Interface) int { return a.Index - b.Index })
	var chosen []Address
	for i := range sorted {
		f := &sorted[i]
		if f.Loopback || !f.Up || !f.byDefault() && !s.names(f.Name) {
			continue
		}
		seen := map[netip.Prefix]bool{}
		for _, four := range []bool{true, false} {
			for _, p := range f.Addresses {
				a := Address{f.Name, p.Addr(), p.Bits()}
				subnet := a.subnet()
				if a.Addr.Is4() != four || !subnet.IsValid() || seen[subnet] || !s.Allow(f.Name, a.Addr) {
					continue
				}
				seen[subnet] = true
				chosen = append(chosen, a)
			}
		}
	}
	return chosen
}

// Find gives the interface's address that is a; its Bits are 0 when no interface has it.
func Find(all []Interface, a netip.Addr) Address {
	a = a.WithZone("")
	for i := range all {
		for _, p := range all[i].Addresses {
			if p.Addr() == a {
				return Address{all[i].Name, a, p.Bits()}
			}
		}
	}
	return Address{Addr: a}
}
