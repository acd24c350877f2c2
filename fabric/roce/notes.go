package roce

import (
	"fmt"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// notes say what is odd about the rails in use, and of the ports that are in none.
func (n *cabling) notes(all []circuit) (notes []string) {
	said := map[string]bool{}
	say := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !said[text] {
			said[text] = true
			notes = append(notes, text)
		}
	}
	used := map[string]bool{}
	for i := range all {
		for k := range all[i].Links {
			l := &all[i].Links[k]
			x, y := &l.End[0], &l.End[1]
			used[portOf(l.Rank[0], x)], used[portOf(l.Rank[1], y)] = true, true
			if x.MTU != y.MTU {
				say("%v: the active MTUs differ, %d and %d bytes: %d is used", l, x.MTU, y.MTU, l.MTU)
			}
			if x.Prefix != y.Prefix {
				say("%v: %v and %v have prefixes of different length", l, x, y)
			}
			if x.GID == y.GID {
				say("%v: both ends are %v: one HCA that the ranks share, or an address that two hosts have", l, x.Addr())
			}
		}
	}
	for r := range n.ports {
		for i := range n.ports[r] {
			p := &n.ports[r][i]
			n.noteNeighbours(r, i, used, say)
			if used[portOf(r, &p.ends[0])] {
				continue
			}
			why := "no lane needs it"
			if p.linkLocal() {
				why = "its addresses are link-local: give it one of its cable's subnet"
			} else if !n.meets(r, p) {
				why = "no other rank has a port in its subnets"
			}
			say("rank %d: %v is unused: %s", r, &p.ends[0], why)
		}
	}
	return notes
}

func portOf(rank int, e *endpoint) string { return fmt.Sprintf("%d %s", rank, e.name()) }

// noteNeighbours tells of ports of a host in one IPv4 subnet, whose kernel answers for each of them by any.
func (n *cabling) noteNeighbours(r, i int, used map[string]bool, say func(string, ...any)) {
	for k := range i {
		for _, x := range n.ports[r][i].ends {
			for _, y := range n.ports[r][k].ends {
				if (used[portOf(r, &x)] || used[portOf(r, &y)]) && x.Addr().Is4() && !x.linkLocal() && oneSubnet(&x, &y) {
					say("rank %d: %v and %v are in one subnet: unless net.ipv4.conf.all.arp_ignore is 1 and arp_announce 2, one may answer for the other", r, &y, &x)
				}
			}
		}
	}
}

// meets says whether another rank has a port in one of this one's subnets.
func (n *cabling) meets(rank int, p *port) bool {
	for r := range n.ports {
		for i := range n.ports[r] {
			for _, x := range p.ends {
				for _, y := range n.ports[r][i].ends {
					if r != rank && oneSubnet(&x, &y) {
						return true
					}
				}
			}
		}
	}
	return false
}

// refusal names a pair that is apart, and the others by number.
func (n *cabling) refusal(apart [][2]int) error {
	a, b := apart[0][0], apart[0][1]
	var s strings.Builder
	fmt.Fprintf(&s, "ranks %d and %d have no rail: rank %d has %s, rank %d has %s, of which no two are in one subnet", a, b, a, n.list(a), b, n.list(b))
	switch {
	case len(n.loose) > 0 && n.linkLocals(a) > 0 && n.linkLocals(b) > 0:
		fmt.Fprintf(&s, "; link-local ones do not say which cable they are on (%s): give each cable a subnet, or leave one port a rank by HCAs", n.loose[0])
	case n.world == relayWorld:
		s.WriteString("; both other ranks would have to reach both of them, to relay: join them by a cable or switch, or correct the addresses")
	case n.world > 2:
		fmt.Fprintf(&s, "; only a ring of %d relays, and these are %d ranks: join them by a cable or switch, or correct the addresses", relayWorld, n.world)
	default:
		s.WriteString("; correct the addresses, or choose other ports by HCAs")
	}
	if len(apart) > 1 {
		var others []string
		for _, p := range apart[1:] {
			others = append(others, fmt.Sprintf("%d and %d", p[0], p[1]))
		}
		fmt.Fprintf(&s, "; likewise %s", listedIn(others, ", ", 40))
	}
	return fabric.Unsupportedf("%s", s.String())
}

// list names a rank's endpoints, as far as a vote can carry them.
func (n *cabling) list(r int) string {
	var texts []string
	for _, p := range n.ports[r] {
		for i := range p.ends {
			texts = append(texts, p.ends[i].String())
		}
	}
	return listedIn(texts, ", ", maxListed/3)
}
