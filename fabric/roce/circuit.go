package roce

import (
	"fmt"
	"slices"
	"strings"
)

// link is a rail as a lane uses it.
type link struct {
	Rank [2]int // index 0 is nearer the circuit's A
	End  [2]endpoint
	MTU  int // the smaller of both ends'
}

// circuit is what a lane goes over: one link, or, relayed, one to the rank between and one from there.
type circuit struct {
	A, B  int // A < B
	Via   int // -1: direct
	Links []link
}

// String names it as errors and logs do.
func (c *circuit) String() string {
	texts := make([]string, len(c.Links))
	for i := range c.Links {
		texts[i] = c.Links[i].String()
	}
	return strings.Join(texts, ", then ")
}

// mtu is the least on its way.
func (c *circuit) mtu() int {
	least := c.Links[0].MTU
	for i := range c.Links {
		least = min(least, c.Links[i].MTU)
	}
	return least
}

func (l *link) String() string {
	return fmt.Sprintf("rank %d %s - rank %d %s", l.Rank[0], l.End[0].name(), l.Rank[1], l.End[1].name())
}

// rings of so many ranks relay.
const relayWorld = 4

// circuits gives the lanes of every pair, by pair and then in an order on which all ranks agree: the same on every rank that has the same
// endpoints, of each rank in its order. stripes is Config's. notes say what is odd. Errors: ErrUnsupported that names a pair without a way.
func circuits(ends [][]endpoint, stripes int) (all []circuit, notes []string, err error) {
	n := newCabling(ends)
	n.joinSubnets()
	if len(n.apart()) > 0 {
		n.joinLinkLocal()
	}
	if apart := n.apart(); len(apart) > 0 {
		return nil, nil, n.refusal(apart)
	}
	for a := range n.world {
		for b := a + 1; b < n.world; b++ {
			all = append(all, n.lanes(a, b, stripes)...)
		}
	}
	return all, n.notes(all), nil
}

// vias are the ranks between two: in a group of four, the other two where both reach both.
func (n *cabling) vias(a, b int) []int {
	var vias []int
	for v := range n.world {
		if v != a && v != b && len(n.between(a, v)) > 0 && len(n.between(v, b)) > 0 {
			vias = append(vias, v)
		}
	}
	if n.world != relayWorld || len(vias) != relayWorld-2 {
		return nil
	}
	return vias
}

// apart are the pairs without a way, first those of the ranks that lack most.
func (n *cabling) apart() (pairs [][2]int) {
	lacks := make([]int, n.world)
	for a := range n.world {
		for b := a + 1; b < n.world; b++ {
			if len(n.rails[[2]int{a, b}]) == 0 && n.vias(a, b) == nil {
				pairs = append(pairs, [2]int{a, b})
				lacks[a]++
				lacks[b]++
			}
		}
	}
	slices.SortStableFunc(pairs, func(p, q [2]int) int { return lacks[q[0]] + lacks[q[1]] - lacks[p[0]] - lacks[p[1]] })
	return pairs
}

// lanes are a pair's circuits: its ways in turn, until there are as many as are asked for.
func (n *cabling) lanes(a, b, stripes int) []circuit {
	ways := n.ways(a, b)
	count := stripes
	if count == 0 {
		count = len(ways)
	}
	if ways[0].Via >= 0 {
		count = max(count, relayWorld-2) // each neighbour carries its part
	}
	lanes := make([]circuit, min(count, MaxStripes))
	for i := range lanes {
		lanes[i] = ways[i%len(ways)]
		lanes[i].Links = slices.Clone(lanes[i].Links) // a lane's own, though others go the same way
	}
	return lanes
}

// ways are a pair's rails, or those through each rank between, in turn.
func (n *cabling) ways(a, b int) (ways []circuit) {
	for _, l := range n.between(a, b) {
		ways = append(ways, circuit{A: a, B: b, Via: -1, Links: []link{l}})
	}
	if len(ways) > 0 {
		return ways
	}
	vias := n.vias(a, b)
	for i := range maxPorts {
		for _, v := range vias {
			if to, from := n.between(a, v), n.between(v, b); i < min(len(to), len(from)) {
				ways = append(ways, circuit{A: a, B: b, Via: v, Links: []link{to[i], from[i]}})
			}
		}
	}
	return ways
}
