package rail

import (
	"net/netip"
	"slices"
)

// Pair is the place of an address in each of two lists.
type Pair struct{ Lower, Higher int }

// Match pairs the addresses of two ranks that lie in one subnet, of the same prefix length at both ends. Both ranks find
// the same pairs in the same order, that of the lower rank's list, since both call it with the same lists. An address, a
// subnet and a pair of interfaces are used once: the IPv4 and IPv6 addresses of one cable are one rail, by IPv4. What the
// taken pairs use is used already.
func Match(lower, higher []Address, taken ...Pair) []Pair {
	type cable struct{ lower, higher string }
	subnets, cables := map[netip.Prefix]bool{}, map[cable]bool{}
	usedLower, usedHigher := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	use := func(p Pair) {
		l, h := lower[p.Lower], higher[p.Higher]
		subnets[l.subnet()], subnets[h.subnet()] = true, true
		usedLower[l.Addr], usedHigher[h.Addr] = true, true
		cables[cable{l.Interface, h.Interface}] = true
	}
	for _, p := range taken {
		use(p)
	}
	var pairs []Pair
	for _, four := range []bool{true, false} {
		for i, l := range lower {
			if l.Addr.Is4() != four || usedLower[l.Addr] {
				continue
			}
			for k, h := range higher {
				if SameSubnet(l, h) && !subnets[l.subnet()] && !usedHigher[h.Addr] && !cables[cable{l.Interface, h.Interface}] {
					pairs = append(pairs, Pair{i, k})
					use(Pair{i, k})
					break
				}
			}
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return a.Lower - b.Lower })
	return pairs
}

// SameSubnet says whether two hosts' addresses lie in one subnet, by both ends' prefix lengths.
func SameSubnet(a, b Address) bool {
	return a.subnet().IsValid() && a.subnet() == b.subnet() && a.Addr != b.Addr
}
