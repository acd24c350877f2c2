package roce

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
)

// gids reads "3 v2 10.0.0.1 eth0", the interface left out where there is none.
func gids(texts ...string) []GID {
	var all []GID
	for _, text := range texts {
		g, addr := GID{}, ""
		_, _ = fmt.Sscanf(text, "%d v%d %s %s", &g.Index, &g.Version, &addr, &g.NetDev)
		g.Addr = netip.MustParseAddr(addr).As16()
		all = append(all, g)
	}
	return all
}

func withGIDs(name string, texts ...string) Port {
	p := bare(name)[0]
	p.GIDs = gids(texts...)
	return p
}

// hostOf has interfaces as "eth0 10.0.0.1/24".
func hostOf(texts ...string) func(string) ([]netip.Prefix, error) {
	return func(netdev string) (found []netip.Prefix, err error) {
		err = fmt.Errorf("interface %s: no such network interface", netdev)
		for _, text := range texts {
			if name, prefix, _ := strings.Cut(text, " "); name == netdev {
				err = nil
				if prefix != "" {
					found = append(found, netip.MustParsePrefix(prefix))
				}
			}
		}
		return found, err
	}
}

func chosen(c choice) (all []string) {
	for i := range c.ends {
		all = append(all, fmt.Sprintf("%v @%d", &c.ends[i], c.ends[i].GIDIndex))
	}
	return all
}

func TestAGIDIsChosenByTypeAndAddress(t *testing.T) {
	host := hostOf("eth0 10.0.0.1/24", "eth0 fd00::1/56", "eth0 fd01::1/64", "eth0 10.0.1.1/30", "eth0 10.0.0.9/24", "eth0.7 10.7.0.1/16", "eth1 192.168.9.9/24")
	for name, tc := range map[string]struct {
		table []string
		want  []string
		why   string
	}{
		"as most devices have them": {[]string{"0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0", "2 v1 10.0.0.1 eth0", "3 v2 10.0.0.1 eth0"},
			[]string{"d:1 10.0.0.1/24 @3"}, "d:1 10.0.0.1/24 by GID 3, one of 4, RoCE v2, IPv4"},
		"as rxe has them":       {[]string{"0 v2 fe80::1 eth0", "1 v2 10.0.0.1 eth0"}, []string{"d:1 10.0.0.1/24 @1"}, ""},
		"they start at 12":      {[]string{"12 v1 10.0.0.1 eth0", "13 v2 10.0.0.1 eth0"}, []string{"d:1 10.0.0.1/24 @13"}, ""},
		"v2 before v1":          {[]string{"4 v2 10.0.0.1 eth0", "5 v1 10.0.0.1 eth0"}, []string{"d:1 10.0.0.1/24 @4"}, ""},
		"link-local ones first": {[]string{"0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0", "7 v2 10.0.0.1 eth0"}, []string{"d:1 10.0.0.1/24 @7"}, ""},
		"IPv6 alone":            {[]string{"1 v2 fe80::1 eth0", "2 v2 fd00::1 eth0"}, []string{"d:1 fd00::1/56 @2"}, "RoCE v2, IPv6"},
		"IPv4 before IPv6": {[]string{"1 v2 fe80::1 eth0", "2 v2 fd00::1 eth0", "5 v2 10.0.0.1 eth0"},
			[]string{"d:1 10.0.0.1/24 @5", "d:1 fd00::1/56 @2"}, ""},
		"link-local alone": {[]string{"0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0"}, []string{"d:1 fe80::1/64 @1"}, "by GID 1, one of 2, RoCE v2, link-local: the port has nothing else"},
		"both kinds of link-local": {[]string{"1 v2 fe80::1 eth0", "3 v2 169.254.7.7 eth0"},
			[]string{"d:1 fe80::1/64 @1", "d:1 169.254.7.7/16 @3"}, ""},
		"IPv4 link-local is no better": {[]string{"1 v2 169.254.7.7 eth0", "3 v2 fd00::1 eth0"}, []string{"d:1 fd00::1/56 @3"}, ""},
		"several subnets": {[]string{"3 v2 10.0.0.1 eth0", "5 v2 10.0.1.1 eth0", "7 v2 fd01::1 eth0"},
			[]string{"d:1 10.0.0.1/24 @3", "d:1 10.0.1.1/30 @5", "d:1 fd01::1/64 @7"}, ""},
		"several addresses of one":         {[]string{"5 v2 10.0.0.9 eth0", "3 v2 10.0.0.1 eth0"}, []string{"d:1 10.0.0.1/24 @3"}, ""},
		"a VLAN's":                         {[]string{"3 v2 10.7.0.1 eth0.7"}, []string{"d:1 10.7.0.1/16 @3"}, ""},
		"no interface":                     {[]string{"3 v2 10.3.0.1"}, []string{"d:1 10.3.0.1/24 @3"}, "; /24 is a guess: it names no interface here"},
		"an interface elsewhere":           {[]string{"3 v2 10.3.0.1 eth7"}, []string{"d:1 10.3.0.1/24 @3"}, "; /24 is a guess: interface eth7: no such network interface"},
		"one of that name elsewhere":       {[]string{"3 v2 10.3.0.1 eth1"}, []string{"d:1 10.3.0.1/24 @3"}, "; /24 is a guess: eth1 has no such address here"},
		"IPv6 elsewhere":                   {[]string{"3 v2 fd00::3 eth7"}, []string{"d:1 fd00::3/64 @3"}, "; /64 is a guess: interface eth7"},
		"what is no address is not one":    {[]string{"0 v2 :: eth0", "1 v2 ff02::1 eth0", "2 v2 127.0.0.1 eth0", "3 v2 0.0.0.0 eth0", "4 v2 ::1 eth0", "5 v2 10.0.0.1 eth0"}, []string{"d:1 10.0.0.1/24 @5"}, ""},
		"of InfiniBand's kind":             {[]string{"0 v0 fe80::1 eth0", "1 v2 10.0.0.1 eth0"}, []string{"d:1 10.0.0.1/24 @1"}, ""},
		"no more than four, the best ones": {[]string{"1 v2 fd01::1 x", "2 v2 10.1.0.1 x", "3 v2 10.2.0.1 x", "4 v2 10.3.0.1 x", "5 v2 10.4.0.1 x", "6 v2 10.5.0.1 x"}, []string{"d:1 10.1.0.1/24 @2", "d:1 10.2.0.1/24 @3", "d:1 10.3.0.1/24 @4", "d:1 10.4.0.1/24 @5"}, ""},
	} {
		c, err := choose([]Port{withGIDs("d:1", tc.table...)}, nil, host)
		require.NoError(t, err, name)
		assert.Equal(t, tc.want, chosen(c), name)
		assert.Contains(t, c.taken[0], tc.why, name)
	}
}

// Addresses that go and come move GIDs to other indexes; the choice goes with the address.
func TestADriftingIndexChangesNoChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := gids("0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0", "2 v1 10.0.0.1 eth0", "3 v2 10.0.0.1 eth0", "4 v1 fd00::1 eth0", "5 v2 fd00::1 eth0")
		at := rapid.Permutation([]int{0, 1, 2, 3, 7, 12, 200}).Draw(t, "indexes")
		for i := range table {
			table[i].Index = at[i]
		}
		table = rapid.Permutation(table).Draw(t, "order")
		p := bare("d:1")[0]
		p.GIDs = table
		c, err := choose([]Port{p}, nil, hostOf("eth0 10.0.0.1/24", "eth0 fd00::1/64"))
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprintf("d:1 10.0.0.1/24 @%d", at[3]), fmt.Sprintf("d:1 fd00::1/64 @%d", at[5])}, chosen(c))
	})
}

func TestAnIPv4PrefixMayBeWrittenAsIPv6(t *testing.T) {
	c, err := choose([]Port{withGIDs("d:1", "3 v2 10.0.0.1 eth0")}, nil, hostOf("eth0 ::ffff:10.0.0.1/126"))
	require.NoError(t, err)
	assert.Equal(t, []string{"d:1 10.0.0.1/30 @3"}, chosen(c))
}

func TestPortsThatCarryNothingAreNamedWithTheReason(t *testing.T) {
	ports := []Port{withGIDs("a:1", "3 v2 10.0.0.1 eth0"), withGIDs("b:1", "3 v2 10.0.1.1 eth0"), withGIDs("c:1", "0 v0 fe80::1"), withGIDs("d:1", "0 v1 fe80::1 eth0", "2 v1 10.0.0.1 eth0"),
		withGIDs("e:1"), withGIDs("f:1", "3 v2 10.0.2.1 eth0"), withGIDs("g:1", "3 v2 10.0.3.1 eth0")}
	ports[1].Active, ports[1].State = false, "down"
	ports[2].Ethernet = false
	ports[5].MTU = 0
	c, err := choose(ports, mustParse(t, "^g"), hostOf())
	require.NoError(t, err)
	assert.Equal(t, []string{"a:1 10.0.0.1/24 @3"}, chosen(c))
	assert.Equal(t, []string{"b:1: down", "c:1 is InfiniBand, not Ethernet",
		"d:1 has no GID of RoCE v2 with an IP address; it has 0 fe80::1 (RoCE v1), 2 10.0.0.1 (RoCE v1)",
		"e:1 has no GID of RoCE v2 with an IP address; it has none", "f:1 has an active MTU of 0 bytes, which is none of RoCE's", `g:1 is excluded by HCAs[0] "^g"`}, c.denied)

	for _, tc := range []struct {
		devices string
		ports   []Port
		kind    error
		want    string
	}{
		{"", nil, fabric.ErrUnsupported, "there is no RDMA port"},
		{"", ports[1:3], fabric.ErrUnsupported, "no port is active Ethernet: b:1: down; c:1 is InfiniBand, not Ethernet; bring a link up"},
		{"", ports[1:5], fabric.ErrUnsupported, "no port has a usable GID: b:1: down; c:1 is InfiniBand, not Ethernet; d:1 has no GID of RoCE v2 with an IP address; it has 0 fe80::1 (RoCE v1), 2 10.0.0.1 (RoCE v1); e:1 has no"},
		{"", []Port{{Device: "h", Port: 1, State: "it does not open: permission denied"}}, fabric.ErrUnsupported, "no port is active Ethernet: h:1: it does not open: permission denied; bring"},
		{"=b", ports, fabric.ErrUnsupported, "no port is active Ethernet: b:1: down"},
		{"^a", ports[:1], fabric.ErrInvalid, `HCAs ["^a"] leaves no port; there are: a:1`},
		{"aa", ports[:2], fabric.ErrInvalid, `did you mean a?`},
	} {
		_, err := choose(tc.ports, mustParse(t, tc.devices), hostOf())
		assert.ErrorIs(t, err, tc.kind, tc.devices)
		assert.ErrorContains(t, err, tc.want)
	}
}

func mustParse(t require.TestingT, devices ...string) selection {
	if len(devices) == 1 && devices[0] == "" {
		devices = nil
	}
	list, err := parseDevices(devices)
	require.NoError(t, err)
	return list
}

func TestAPinnedGIDIsCheckedAndItsReasonTold(t *testing.T) {
	ports := []Port{withGIDs("a:1", "0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0", "2 v1 10.0.0.1 eth0", "3 v2 10.0.0.1 eth0", "9 v2 10.0.9.1 eth0"), withGIDs("b:1", "9 v2 10.0.1.1 eth0")}
	for _, tc := range []struct {
		devices []string
		want    []string
		why     string
	}{
		{[]string{"a:1:9"}, []string{"a:1 10.0.9.1/24 @9"}, `RoCE v2, as HCAs[0] "a:1:9" says`},
		{[]string{"=a:1:1"}, []string{"a:1 fe80::1/64 @1"}, `RoCE v2, as HCAs[0] "=a:1:1" says`},
		{[]string{"b", "a:1:9", "a:1:3"}, []string{"b:1 10.0.1.1/24 @9", "a:1 10.0.9.1/24 @9", "a:1 10.0.0.1/24 @3"}, "IPv4"},
	} {
		c, err := choose(ports, mustParse(t, tc.devices...), hostOf())
		require.NoError(t, err, tc.devices)
		assert.Equal(t, tc.want, chosen(c), tc.devices)
		assert.Contains(t, c.taken[0], tc.why)
	}
	for _, tc := range []struct{ device, want string }{
		{"a:1:7", `HCAs[0] "a:1:7": a:1 has no GID 7; it has 0 fe80::1 (RoCE v1), 1 fe80::1 (RoCE v2), 2`},
		{"a:1:2", `HCAs[0] "a:1:2": GID 2 of a:1 is 10.0.0.1, RoCE v1; RoCE v2 is needed; it has 0 fe80::1`},
	} {
		_, err := choose(ports, mustParse(t, tc.device), hostOf())
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, tc.want)
	}
}

func TestNoMorePortsThanAdvertsHold(t *testing.T) {
	var ports []Port
	for i := range maxPorts + 2 {
		p := withGIDs(fmt.Sprintf("d%c:1", 'a'+i), fmt.Sprintf("3 v2 10.%d.0.1", i))
		ports = append(ports, p)
	}
	c, err := choose(ports, nil, hostOf())
	require.NoError(t, err)
	assert.Len(t, c.ends, maxPorts)
	assert.Equal(t, []string{"dq:1 is one too many: 16 ports are used at most; choose by HCAs", "dr:1 is one too many: 16 ports are used at most; choose by HCAs"}, c.denied)
}

func TestAnInterfaceIsAskedForOnce(t *testing.T) {
	asked := map[string]int{}
	_, err := choose([]Port{withGIDs("a:1", "1 v2 10.0.0.1 eth0", "2 v2 10.0.1.1 eth0", "3 v2 fd00::1 eth1")}, nil, func(netdev string) ([]netip.Prefix, error) {
		asked[netdev]++
		return nil, fmt.Errorf("no")
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"eth0": 1, "eth1": 1}, asked)
}

func TestTheSystemKnowsItsLoopback(t *testing.T) {
	for _, name := range []string{"lo", "lo0"} {
		if found, err := systemAddresses(name); err == nil {
			assert.Contains(t, found, netip.MustParsePrefix("127.0.0.1/8"))
		}
	}
	_, err := systemAddresses("no-such-interface")
	assert.ErrorContains(t, err, "interface no-such-interface")
}
