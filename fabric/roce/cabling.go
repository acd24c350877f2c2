package roce

import (
	"fmt"
	"slices"
)

// port is one of a rank's, with its endpoints.
type port struct{ ends []endpoint }

func (p *port) linkLocal() bool {
	return !slices.ContainsFunc(p.ends, func(e endpoint) bool { return !e.linkLocal() })
}

// cabling is the ranks' ports, and the rails between them.
type cabling struct {
	world int
	ports [][]port          // by rank
	rails map[[2]int][]link // by pair, the lower rank first
	loose []string          // why link-local ports are not joined
}

func newCabling(ends [][]endpoint) *cabling {
	n := &cabling{world: len(ends), ports: make([][]port, len(ends)), rails: map[[2]int][]link{}}
	for r := range ends {
		at := map[string]int{}
		for _, e := range ends[r] {
			i, there := at[e.name()]
			if !there {
				i = len(n.ports[r])
				at[e.name()] = i
				n.ports[r] = append(n.ports[r], port{})
			}
			n.ports[r][i].ends = append(n.ports[r][i].ends, e)
		}
		for i := range n.ports[r] {
			if p := &n.ports[r][i]; !p.linkLocal() {
				p.ends = slices.DeleteFunc(p.ends, func(e endpoint) bool { return e.linkLocal() })
			}
		}
	}
	return n
}

func (n *cabling) joinSubnets() {
	for a := range n.world {
		for b := a + 1; b < n.world; b++ {
			n.join(a, b, func(x, y *endpoint) bool { return !x.linkLocal() && !y.linkLocal() && oneSubnet(x, y) })
		}
	}
}

// oneSubnet says that two addresses lie in the subnet of the longer prefix.
func oneSubnet(x, y *endpoint) bool {
	return x.subnet().Contains(y.Addr()) && y.subnet().Contains(x.Addr())
}

// join gives a pair its rails: as many as there can be of which none shares a port with another, those in order first.
func (n *cabling) join(a, b int, meet func(x, y *endpoint) bool) {
	mine, theirs := n.ports[a], n.ports[b]
	between := func(i, k int) (x, y endpoint, ok bool) {
		for _, x := range mine[i].ends {
			for _, y := range theirs[k].ends {
				if meet(&x, &y) {
					return x, y, true
				}
			}
		}
		return
	}
	of := match(len(mine), len(theirs), func(i, k int) bool { _, _, ok := between(i, k); return ok })
	for i, k := range of {
		if k >= 0 {
			x, y, _ := between(i, k)
			n.rails[[2]int{a, b}] = append(n.rails[[2]int{a, b}], link{Rank: [2]int{a, b}, End: [2]endpoint{x, y}, MTU: min(x.MTU, y.MTU)})
		}
	}
}

// match gives each of the left its partner on the right, or -1, so that as many as can be have one. It takes the first that is free, and
// moves others only where none is.
func match(left, right int, meet func(i, k int) bool) []int {
	of, taken := make([]int, left), make([]int, right)
	for i := range of {
		of[i] = -1
	}
	for k := range taken {
		taken[k] = -1
	}
	var find func(i int, seen []bool) bool
	find = func(i int, seen []bool) bool {
		for _, free := range []bool{true, false} {
			for k := range right {
				if seen[k] || (taken[k] < 0) != free || !meet(i, k) {
					continue
				}
				seen[k] = true
				if free || find(taken[k], seen) {
					of[i], taken[k] = k, i
					return true
				}
			}
		}
		return false
	}
	for i := range left {
		find(i, make([]bool, right))
	}
	return of
}

// joinLinkLocal joins pairs that have no rail by ports that have link-local addresses alone, where only one cabling is possible that
// reaches them: all such addresses are in one subnet, so that they say nothing of cables.
func (n *cabling) joinLinkLocal() {
	var having []int
	for r := range n.world {
		count := n.linkLocals(r)
		if count > 0 {
			having = append(having, r)
		}
		if count > 1 {
			n.loose = append(n.loose, fmt.Sprintf("rank %d has %d link-local ports", r, count))
		}
	}
	joined := ""
	for i, a := range having {
		for _, b := range having[i+1:] {
			if len(n.rails[[2]int{a, b}]) > 0 && joined == "" {
				joined = fmt.Sprintf("ranks %d and %d have a subnet, so that their link-local ports need not be on one switch", a, b)
			}
		}
	}
	if len(having) > 2 && joined != "" {
		n.loose = append(n.loose, joined)
	}
	if len(n.loose) > 0 {
		return
	}
	for i, a := range having {
		for _, b := range having[i+1:] {
			n.join(a, b, func(x, y *endpoint) bool { return x.linkLocal() && y.linkLocal() && x.Addr().Is4() == y.Addr().Is4() })
		}
	}
}

// linkLocals counts a rank's ports that have link-local addresses alone.
func (n *cabling) linkLocals(r int) int {
	count := 0
	for i := range n.ports[r] {
		if n.ports[r][i].linkLocal() {
			count++
		}
	}
	return count
}

// between gives the rails of two ranks, seen from the first.
func (n *cabling) between(a, b int) []link {
	if a < b {
		return n.rails[[2]int{a, b}]
	}
	var turned []link
	for _, l := range n.rails[[2]int{b, a}] {
		turned = append(turned, link{Rank: [2]int{a, b}, End: [2]endpoint{l.End[1], l.End[0]}, MTU: l.MTU})
	}
	return turned
}
