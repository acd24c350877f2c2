package roce

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
)

// rankWith reads "a:1 10.0.0.1/24" or "a:1 10.0.0.1/24 1024", the MTU.
func rankWith(texts ...string) []endpoint {
	var ends []endpoint
	for _, text := range texts {
		e, prefix := endpoint{MTU: 4096}, ""
		_, _ = fmt.Sscan(strings.Replace(text, ":", " ", 1), &e.Device, &e.Port, &prefix, &e.MTU)
		p := netip.MustParsePrefix(prefix)
		e.GID, e.Prefix = p.Addr().As16(), p.Bits()
		ends = append(ends, e)
	}
	return ends
}

// shown is one line a circuit: "0-2 via 1: a-b, b-a".
func shown(all []circuit) (lines []string) {
	for i := range all {
		c := &all[i]
		line := fmt.Sprintf("%d-%d", c.A, c.B)
		if c.Via >= 0 {
			line += fmt.Sprintf(" via %d", c.Via)
		}
		var links []string
		for _, l := range c.Links {
			links = append(links, l.End[0].Device+"-"+l.End[1].Device)
		}
		lines = append(lines, line+": "+strings.Join(links, ", "))
	}
	return lines
}

func TestRailsJoinPortsOfOneSubnet(t *testing.T) {
	for name, tc := range map[string]struct {
		ends    [][]endpoint
		stripes int
		want    []string
		notes   []string
	}{
		"two on a switch": {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("b:1 10.0.0.2/24")}, 0, []string{"0-1: a-b"}, nil},
		"crossed cables":  {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 10.0.1.1/24"), rankWith("c:1 10.0.1.2/24", "d:1 10.0.0.2/24")}, 0, []string{"0-1: a-d", "0-1: b-c"}, nil},
		"two ports each in one subnet go in order": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 10.0.0.2/24"), rankWith("c:1 10.0.0.3/24", "d:1 10.0.0.4/24"), rankWith("e:1 10.0.0.5/24", "f:1 10.0.0.6/24")}, 0,
			[]string{"0-1: a-c", "0-1: b-d", "0-2: a-e", "0-2: b-f", "1-2: c-e", "1-2: d-f"},
			[]string{
				"rank 0: a:1 10.0.0.1/24 and b:1 10.0.0.2/24 are in one subnet: unless net.ipv4.conf.all.arp_ignore is 1 and arp_announce 2, one may answer for the other",
				"rank 1: c:1 10.0.0.3/24 and d:1 10.0.0.4/24 are in one subnet: unless net.ipv4.conf.all.arp_ignore is 1 and arp_announce 2, one may answer for the other",
				"rank 2: e:1 10.0.0.5/24 and f:1 10.0.0.6/24 are in one subnet: unless net.ipv4.conf.all.arp_ignore is 1 and arp_announce 2, one may answer for the other"}},
		"ports of unlike count": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 10.0.1.1/24", "c:1 10.0.2.1/24"), rankWith("d:1 10.0.2.2/24", "e:1 10.0.0.2/24")}, 0,
			[]string{"0-1: a-e", "0-1: c-d"}, []string{"rank 0: b:1 10.0.1.1/24 is unused: no other rank has a port in its subnets"}},
		"a port that is not needed answers too": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 10.0.0.2/24"), rankWith("c:1 10.0.0.3/24")}, 0, []string{"0-1: a-c"},
			[]string{"rank 0: a:1 10.0.0.1/24 and b:1 10.0.0.2/24 are in one subnet: unless net.ipv4.conf.all.arp_ignore is 1 and arp_announce 2, one may answer for the other",
				"rank 0: b:1 10.0.0.2/24 is unused: no lane needs it"}},
		"two subnets between two ports are one rail, by IPv4": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "a:1 10.0.1.1/24", "a:1 fd00::1/64"), rankWith("b:1 10.0.1.2/24", "b:1 10.0.0.2/24", "b:1 fd00::2/64")}, 0, []string{"0-1: a-b"}, nil},
		"the subnet that both have":                           {[][]endpoint{rankWith("a:1 10.0.0.1/24", "a:1 fd00::1/64"), rankWith("b:1 10.0.1.2/24", "b:1 fd00::2/64")}, 0, []string{"0-1: a-b"}, nil},
		"one moves so that both have a rail": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "a:1 10.0.1.1/24", "b:1 10.0.0.9/24"), rankWith("c:1 10.0.0.2/24", "d:1 10.0.1.2/24")}, 0, []string{"0-1: a-d", "0-1: b-c"},
			[]string{"rank 0: a:1 10.0.0.1/24 and b:1 10.0.0.9/24 are in one subnet: unless net.ipv4.conf.all.arp_ignore is 1 and arp_announce 2, one may answer for the other"}},
		"ports of one device":          {[][]endpoint{rankWith("a:1 10.0.0.1/24", "a:2 10.0.1.1/24"), rankWith("b:2 10.0.0.2/24", "b:1 10.0.1.2/24")}, 0, []string{"0-1: a-b", "0-1: a-b"}, nil},
		"inside an octet":              {[][]endpoint{rankWith("a:1 10.0.0.1/30", "b:1 10.0.0.5/30"), rankWith("c:1 10.0.0.6/30", "d:1 10.0.0.2/30")}, 0, []string{"0-1: a-d", "0-1: b-c"}, nil},
		"a subnet of two":              {[][]endpoint{rankWith("a:1 10.0.0.0/31"), rankWith("b:1 10.0.0.1/31")}, 0, []string{"0-1: a-b"}, nil},
		"unlike prefixes, both inside": {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("b:1 10.0.0.2/16")}, 0, []string{"0-1: a-b"}, []string{"rank 0 a:1 - rank 1 b:1: a:1 10.0.0.1/24 and b:1 10.0.0.2/16 have prefixes of different length"}},
		"the smaller MTU, and both are told": {[][]endpoint{rankWith("a:1 10.0.0.1/24 4096"), rankWith("b:1 10.0.0.2/24 1024")}, 2, []string{"0-1: a-b", "0-1: a-b"},
			[]string{"rank 0 a:1 - rank 1 b:1: the active MTUs differ, 4096 and 1024 bytes: 1024 is used"}},
		"one HCA that ranks share":      {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("a:1 10.0.0.1/24")}, 0, []string{"0-1: a-a"}, []string{"rank 0 a:1 - rank 1 a:1: both ends are 10.0.0.1: one HCA that the ranks share, or an address that two hosts have"}},
		"fewer stripes than rails":      {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 10.0.1.1/24"), rankWith("c:1 10.0.0.2/24", "d:1 10.0.1.2/24")}, 1, []string{"0-1: a-c"}, []string{"rank 0: b:1 10.0.1.1/24 is unused: no lane needs it", "rank 1: d:1 10.0.1.2/24 is unused: no lane needs it"}},
		"more stripes than rails":       {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 10.0.1.1/24"), rankWith("c:1 10.0.0.2/24", "d:1 10.0.1.2/24")}, 5, []string{"0-1: a-c", "0-1: b-d", "0-1: a-c", "0-1: b-d", "0-1: a-c"}, nil},
		"link-local where that is all":  {[][]endpoint{rankWith("a:1 fe80::1/64"), rankWith("b:1 fe80::2/64")}, 0, []string{"0-1: a-b"}, nil},
		"IPv4 link-local likewise":      {[][]endpoint{rankWith("a:1 169.254.1.1/16", "a:1 fe80::1/64"), rankWith("b:1 169.254.2.2/16")}, 0, []string{"0-1: a-b"}, nil},
		"link-local ones on a switch":   {[][]endpoint{rankWith("a:1 fe80::1/64"), rankWith("b:1 fe80::2/64"), rankWith("c:1 fe80::3/64")}, 0, []string{"0-1: a-b", "0-2: a-c", "1-2: b-c"}, nil},
		"no link-local beside a subnet": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 fe80::1/64"), rankWith("c:1 10.0.0.2/24", "d:1 fe80::2/64")}, 0, []string{"0-1: a-c"}, []string{"rank 0: b:1 fe80::1/64 is unused: its addresses are link-local: give it one of its cable's subnet", "rank 1: d:1 fe80::2/64 is unused: its addresses are link-local: give it one of its cable's subnet"}},
		"link-local where a port has nothing else": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "a:1 fe80::1/64", "c:1 fe80::2/64"), rankWith("b:1 fe80::3/64")}, 0, []string{"0-1: c-b"},
			[]string{"rank 0: a:1 10.0.0.1/24 is unused: no other rank has a port in its subnets"}},
		"more rails than lanes": {[][]endpoint{many(9, 1), many(9, 2)}, 0, []string{"0-1: a-a", "0-1: b-b", "0-1: c-c", "0-1: d-d", "0-1: e-e", "0-1: f-f", "0-1: g-g", "0-1: h-h"},
			[]string{"rank 0: i:1 10.0.8.1/24 is unused: no lane needs it", "rank 1: i:1 10.0.8.2/24 is unused: no lane needs it"}},
		"a relay, and not link-local ports that may be on no cable": {strays(ringOf(4), 0, 2), 0,
			[]string{"0-1: a-b", "0-2 via 1: a-b, a-b", "0-2 via 3: b-a, b-a", "0-3: b-a", "1-2: a-b", "1-3 via 0: b-a, b-a", "1-3 via 2: a-b, a-b", "2-3: a-b"},
			[]string{"rank 0: s:1 fe80::1/64 is unused: its addresses are link-local: give it one of its cable's subnet", "rank 2: s:1 fe80::3/64 is unused: its addresses are link-local: give it one of its cable's subnet"}},
		"a ring of three": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 10.0.2.1/24"), rankWith("a:1 10.0.1.1/24", "b:1 10.0.0.2/24"), rankWith("a:1 10.0.2.2/24", "b:1 10.0.1.2/24")}, 0,
			[]string{"0-1: a-b", "0-2: b-a", "1-2: a-b"}, nil},
		"a ring of three with a link-local cable": {[][]endpoint{rankWith("a:1 10.0.0.1/24", "b:1 fe80::1/64"), rankWith("a:1 10.0.1.1/24", "b:1 10.0.0.2/24"), rankWith("a:1 fe80::2/64", "b:1 10.0.1.2/24")}, 0,
			[]string{"0-1: a-b", "0-2: b-a", "1-2: a-b"}, nil},
		"a ring of four": {ringOf(4), 0,
			[]string{"0-1: a-b", "0-2 via 1: a-b, a-b", "0-2 via 3: b-a, b-a", "0-3: b-a", "1-2: a-b", "1-3 via 0: b-a, b-a", "1-3 via 2: a-b, a-b", "2-3: a-b"}, nil},
		"a ring of four with one stripe has both neighbours relay": {ringOf(4), 1,
			[]string{"0-1: a-b", "0-2 via 1: a-b, a-b", "0-2 via 3: b-a, b-a", "0-3: b-a", "1-2: a-b", "1-3 via 0: b-a, b-a", "1-3 via 2: a-b, a-b", "2-3: a-b"}, nil},
		"a ring of four with three": {ringOf(4), 3, []string{"0-1: a-b", "0-1: a-b", "0-1: a-b", "0-2 via 1: a-b, a-b", "0-2 via 3: b-a, b-a", "0-2 via 1: a-b, a-b", "0-3: b-a", "0-3: b-a", "0-3: b-a",
			"1-2: a-b", "1-2: a-b", "1-2: a-b", "1-3 via 0: b-a, b-a", "1-3 via 2: a-b, a-b", "1-3 via 0: b-a, b-a", "2-3: a-b", "2-3: a-b", "2-3: a-b"}, nil},
	} {
		all, notes, err := circuits(tc.ends, tc.stripes)
		require.NoError(t, err, name)
		assert.Equal(t, tc.want, shown(all), name)
		assert.Equal(t, tc.notes, notes, name)
	}
	all, _, err := circuits([][]endpoint{rankWith("a:1 10.0.0.1/24 2048"), rankWith("b:1 10.0.0.2/24 1024")}, 0)
	require.NoError(t, err)
	assert.Equal(t, 1024, all[0].Links[0].MTU)
}

// ringOf cables a of each rank to b of the next, a subnet a cable.
func ringOf(world int) [][]endpoint {
	ends := make([][]endpoint, world)
	for r := range ends {
		ends[r] = rankWith(fmt.Sprintf("a:1 10.0.%d.1/24", r), fmt.Sprintf("b:1 10.0.%d.2/24", (r+world-1)%world))
	}
	return ends
}

// many is a rank with so many ports, a subnet each.
func many(ports, host int) (ends []endpoint) {
	for i := range ports {
		ends = append(ends, rankWith(fmt.Sprintf("%c:1 10.0.%d.%d/24", 'a'+i, i, host))...)
	}
	return ends
}

// strays gives ranks a further port, on which nobody has put an address.
func strays(ends [][]endpoint, ranks ...int) [][]endpoint {
	for _, r := range ranks {
		ends[r] = append(ends[r], rankWith(fmt.Sprintf("s:1 fe80::%d/64", 1+r))...)
	}
	return ends
}

func TestAPairWithoutAWayIsRefusedByName(t *testing.T) {
	for name, tc := range map[string]struct {
		ends [][]endpoint
		want []string
	}{
		"subnets that do not meet": {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("b:1 10.0.1.2/24")},
			[]string{"ranks 0 and 1 have no rail: rank 0 has a:1 10.0.0.1/24, rank 1 has b:1 10.0.1.2/24, of which no two are in one subnet; correct the addresses"}},
		"a subnet of one":    {[][]endpoint{rankWith("a:1 10.0.0.1/32"), rankWith("b:1 10.0.0.2/32")}, []string{"ranks 0 and 1"}},
		"only one is inside": {[][]endpoint{rankWith("a:1 10.0.0.1/30"), rankWith("b:1 10.0.0.9/24")}, []string{"ranks 0 and 1"}},
		"IPv4 and IPv6":      {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("b:1 fd00::1/64")}, []string{"ranks 0 and 1"}},
		"link-local and not": {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("b:1 fe80::1/64")}, []string{"ranks 0 and 1 have no rail", "no two are in one subnet; correct the addresses"}},
		"both kinds of it":   {[][]endpoint{rankWith("a:1 169.254.0.1/16"), rankWith("b:1 fe80::1/64")}, []string{"ranks 0 and 1 have no rail"}},
		"no port":            {[][]endpoint{rankWith("a:1 10.0.0.1/24"), nil}, []string{"rank 1 has none"}},
		"two link-local cables": {[][]endpoint{rankWith("a:1 fe80::1/64", "b:1 fe80::2/64"), rankWith("c:1 fe80::3/64", "d:1 fe80::4/64")},
			[]string{"ranks 0 and 1", "link-local ones do not say which cable they are on (rank 0 has 2 link-local ports): give each cable a subnet, or leave one port a rank by HCAs"}},
		"a ring of three, all link-local": {[][]endpoint{rankWith("a:1 fe80::1/64", "b:1 fe80::2/64"), rankWith("a:1 fe80::3/64", "b:1 fe80::4/64"), rankWith("a:1 fe80::5/64", "b:1 fe80::6/64")},
			[]string{"ranks 0 and 1", "link-local ones", "likewise 0 and 2, 1 and 2"}},
		"a ring of four with two link-local cables": {[][]endpoint{
			rankWith("a:1 10.0.0.1/24", "b:1 fe80::1/64"), rankWith("a:1 fe80::2/64", "b:1 10.0.0.2/24"), rankWith("a:1 10.0.2.1/24", "b:1 fe80::3/64"), rankWith("a:1 fe80::4/64", "b:1 10.0.2.2/24")},
			[]string{"ranks 0 and 2", "(ranks 0 and 1 have a subnet, so that their link-local ports need not be on one switch)", "likewise 0 and 3, 1 and 2, 1 and 3"}},
		"a ring of five": {ringOf(5),
			[]string{"ranks 0 and 2 have no rail: rank 0 has a:1 10.0.0.1/24, b:1 10.0.4.2/24, rank 2 has a:1 10.0.2.1/24, b:1 10.0.1.2/24", "only a ring of 4 relays, and these are 5 ranks", "likewise 0 and 3, 1 and 3, 1 and 4, 2 and 4"}},
		"a chain of three": {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("b:1 10.0.0.2/24", "a:1 10.0.1.1/24"), rankWith("b:1 10.0.1.2/24")}, []string{"ranks 0 and 2", "only a ring of 4 relays, and these are 3 ranks"}},
		"a chain of four": {[][]endpoint{rankWith("a:1 10.0.0.1/24"), rankWith("b:1 10.0.0.2/24", "a:1 10.0.1.1/24"), rankWith("b:1 10.0.1.2/24", "a:1 10.0.2.1/24"), rankWith("b:1 10.0.2.2/24")},
			[]string{"ranks 0 and 3", "both other ranks would have to reach both of them, to relay", "likewise 0 and 2, 1 and 3"}},
	} {
		all, _, err := circuits(tc.ends, 0)
		require.ErrorIs(t, err, fabric.ErrUnsupported, "%s: %v", name, shown(all))
		for _, want := range tc.want {
			assert.ErrorContains(t, err, want, name)
		}
	}
}

func TestARefusalFitsIntoAVote(t *testing.T) {
	ends := make([][]endpoint, 64)
	for r := range ends {
		for i := range maxPorts {
			e := rankWith(fmt.Sprintf("%s:%d fd00:%x:ffff:ffff:ffff:ffff:%x:ffff/64", strings.Repeat("d", maxDeviceName), 1+i, 0x1000+r, 0x1000+i))[0]
			ends[r] = append(ends[r], e)
		}
	}
	_, _, err := circuits(ends, 0)
	require.Error(t, err)
	assert.LessOrEqual(t, len(err.Error()), 512, "%v", err)
	assert.ErrorContains(t, err, "more")
}

// drawWorld has few subnets and ports, so that all collide.
func drawWorld(t *rapid.T) [][]endpoint {
	world := rapid.IntRange(2, 5).Draw(t, "world")
	ends := make([][]endpoint, world)
	for r := range ends {
		seen := map[string]bool{}
		for range rapid.IntRange(1, 5).Draw(t, "ends") {
			net := rapid.IntRange(0, 3).Draw(t, "net")
			p := fmt.Sprintf("10.%d.0.%d/%d", net, 1+r+world*rapid.IntRange(0, 3).Draw(t, "host"), rapid.SampledFrom([]int{8, 16, 16, 24, 30}).Draw(t, "bits"))
			if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
				p = fmt.Sprintf("fe80::%d:%d/64", 1+r, net)
			}
			e := rankWith(fmt.Sprintf("d%d:1 %s", rapid.IntRange(0, 3).Draw(t, "device"), p))[0]
			e.MTU = rapid.SampledFrom([]int{1024, 4096}).Draw(t, "mtu")
			if key := e.name() + e.Addr().String(); !seen[key] {
				seen[key] = true
				ends[r] = append(ends[r], e)
			}
		}
	}
	return ends
}

func TestEveryPairHasItsLanesOrIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends, stripes := drawWorld(t), rapid.IntRange(0, MaxStripes).Draw(t, "stripes")
		world := len(ends)
		before := fmt.Sprint(ends)
		all, notes, err := circuits(ends, stripes)
		again, notesAgain, errAgain := circuits(ends, stripes)
		require.Equal(t, before, fmt.Sprint(ends), "it changes nothing")
		require.Equal(t, []any{all, notes, err}, []any{again, notesAgain, errAgain}, "every rank finds the same")
		if err != nil {
			require.ErrorIs(t, err, fabric.ErrUnsupported)
			var a, b int
			_, scan := fmt.Sscanf(err.Error(), "unsupported: ranks %d and %d have no rail", &a, &b)
			require.NoError(t, scan, "%v", err)
			require.Less(t, a, b)
			require.False(t, oneNet(ends, a, b), "%v, but they share a subnet", err)
			return
		}
		lanes := map[[2]int][]circuit{}
		last := [2]int{}
		for _, c := range all {
			pair := [2]int{c.A, c.B}
			require.Less(t, c.A, c.B)
			require.GreaterOrEqual(t, slices.Compare(pair[:], last[:]), 0, "by pair")
			last, lanes[pair] = pair, append(lanes[pair], c)
			checkCircuit(t, &c, ends)
		}
		for a := range world {
			for b := a + 1; b < world; b++ {
				checkLanes(t, lanes[[2]int{a, b}], stripes)
			}
		}
	})
}

func oneNet(ends [][]endpoint, a, b int) bool {
	for _, x := range ends[a] {
		for _, y := range ends[b] {
			if !x.linkLocal() && !y.linkLocal() && oneSubnet(&x, &y) {
				return true
			}
		}
	}
	return false
}

func checkCircuit(t *rapid.T, c *circuit, ends [][]endpoint) {
	way := []int{c.A, c.B}
	if c.Via >= 0 {
		way = []int{c.A, c.Via, c.B}
		require.Len(t, ends, relayWorld)
		require.False(t, oneNet(ends, c.A, c.B), "relayed though a rail is there")
	}
	require.Len(t, c.Links, len(way)-1)
	for k, l := range c.Links {
		require.Equal(t, [2]int{way[k], way[k+1]}, l.Rank, "nearer A first")
		x, y := l.End[0], l.End[1]
		require.Contains(t, ends[l.Rank[0]], x)
		require.Contains(t, ends[l.Rank[1]], y)
		require.Equal(t, x.linkLocal(), y.linkLocal())
		long := max(x.Prefix, y.Prefix)
		require.Equal(t, netip.PrefixFrom(x.Addr(), long).Masked(), netip.PrefixFrom(y.Addr(), long).Masked(), "%v and %v", &x, &y)
		require.Equal(t, min(x.MTU, y.MTU), l.MTU)
	}
}

// checkLanes looks at a pair's.
func checkLanes(t *rapid.T, lanes []circuit, stripes int) {
	require.NotEmpty(t, lanes)
	require.LessOrEqual(t, len(lanes), MaxStripes)
	relayed := lanes[0].Via >= 0
	distinct, vias := map[string]bool{}, map[int]bool{}
	repeats := false
	for i := range lanes {
		require.Equal(t, relayed, lanes[i].Via >= 0, "all relayed or none")
		vias[lanes[i].Via] = true
		if key := fmt.Sprint(lanes[i]); distinct[key] {
			repeats = true
		} else {
			require.False(t, repeats, "each way once before any is taken again")
			distinct[key] = true
		}
		for k := range lanes[:i] {
			require.NotSame(t, &lanes[k].Links[0], &lanes[i].Links[0], "a lane's links are its own")
		}
	}
	if relayed {
		require.Len(t, vias, 2)
		require.True(t, stripes == 0 || len(lanes) == max(stripes, 2), "%d lanes of %d stripes", len(lanes), stripes)
	} else {
		used := [2]map[string]bool{{}, {}}
		for _, c := range lanes[:len(distinct)] {
			for side, e := range c.Links[0].End {
				require.False(t, used[side][e.name()], "a port in two rails of a pair")
				used[side][e.name()] = true
			}
		}
		if stripes > 0 {
			require.Len(t, lanes, stripes)
		}
	}
	if stripes == 0 {
		require.Len(t, lanes, len(distinct))
	}
}

// Ranks that are numbered otherwise have the same rails.
func TestTheRailsDoNotDependOnWhoIsLower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := drawWorld(t)
		order := make([]int, len(ends)) // of the ranks as they are renumbered
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(t, "order")
		renumbered := make([][]endpoint, len(ends))
		for r, old := range order {
			renumbered[r] = ends[old]
		}
		count := func(all []circuit, name func(int) int) map[string]int {
			lanes := map[string]int{}
			for _, c := range all {
				a, b := name(c.A), name(c.B)
				via := -1
				if c.Via >= 0 {
					via = name(c.Via)
				}
				lanes[fmt.Sprint(min(a, b), max(a, b), via)]++
			}
			return lanes
		}
		all, _, err := circuits(ends, 0)
		turned, _, errTurned := circuits(renumbered, 0)
		require.Equal(t, err == nil, errTurned == nil, "%v, %v", err, errTurned)
		require.Equal(t, count(all, func(r int) int { return r }), count(turned, func(r int) int { return order[r] }))
	})
}

func TestAMatchIsAsLargeAsCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left, right := rapid.IntRange(0, 5).Draw(t, "left"), rapid.IntRange(0, 5).Draw(t, "right")
		edges := map[[2]int]bool{}
		for i := range left {
			for k := range right {
				edges[[2]int{i, k}] = rapid.Bool().Draw(t, "edge")
			}
		}
		of := match(left, right, func(i, k int) bool { return edges[[2]int{i, k}] })
		got, taken := 0, map[int]bool{}
		for i, k := range of {
			if k < 0 {
				continue
			}
			require.True(t, edges[[2]int{i, k}])
			require.False(t, taken[k])
			taken[k] = true
			got++
		}
		require.Equal(t, most(0, left, right, edges, map[int]bool{}), got)
	})
}

// most is the size of the largest match, by trying all.
func most(i, left, right int, edges map[[2]int]bool, taken map[int]bool) int {
	if i == left {
		return 0
	}
	best := most(i+1, left, right, edges, taken)
	for k := range right {
		if edges[[2]int{i, k}] && !taken[k] {
			taken[k] = true
			best = max(best, 1+most(i+1, left, right, edges, taken))
			delete(taken, k)
		}
	}
	return best
}
