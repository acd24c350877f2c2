package rail

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// at reads "eth0 10.0.0.1/24".
func at(t require.TestingT, texts ...string) []Address {
	var all []Address
	for _, text := range texts {
		var name, prefix string
		_, err := fmt.Sscan(text, &name, &prefix)
		require.NoError(t, err, text)
		p := netip.MustParsePrefix(prefix)
		all = append(all, Address{name, p.Addr(), p.Bits()})
	}
	return all
}

func TestPairsShareASubnetByBothPrefixLengths(t *testing.T) {
	for name, tc := range map[string]struct {
		lower, higher []string
		taken, want   []Pair
	}{
		"the order is the lower rank's": {
			[]string{"eth1 10.0.1.1/24", "eth0 10.0.0.1/24"}, []string{"eth0 10.0.0.2/24", "eth1 10.0.1.2/24"}, nil, []Pair{{0, 1}, {1, 0}}},
		"another prefix length is another subnet": {[]string{"eth0 10.0.0.1/24"}, []string{"eth0 10.0.0.2/16"}, nil, nil},
		"a subnet inside the octet":               {[]string{"eth0 10.0.0.1/30", "eth1 10.0.0.5/30"}, []string{"x 10.0.0.6/30"}, nil, []Pair{{1, 0}}},
		"a subnet of two":                         {[]string{"eth0 10.0.0.0/31"}, []string{"eth0 10.0.0.1/31"}, nil, []Pair{{0, 0}}},
		"a subnet of one":                         {[]string{"eth0 10.0.0.1/32"}, []string{"eth0 10.0.0.1/32"}, nil, nil},
		"one address for both":                    {[]string{"eth0 10.0.0.1/24"}, []string{"eth0 10.0.0.1/24"}, nil, nil},
		"one of each subnet": {
			[]string{"eth0 10.0.0.1/24", "eth1 10.0.0.3/24"}, []string{"eth0 10.0.0.2/24", "eth1 10.0.0.4/24"}, nil, []Pair{{0, 0}}},
		"an address is used once, the lower rank's": {[]string{"eth0 10.0.0.1/24", "eth1 10.0.0.1/16"}, []string{"x 10.0.0.2/24", "y 10.0.0.3/16"}, nil, []Pair{{0, 0}}},
		"an address is used once, the higher's":     {[]string{"x 10.0.0.2/24", "y 10.0.0.3/16"}, []string{"eth0 10.0.0.1/24", "eth1 10.0.0.1/16"}, nil, []Pair{{0, 0}}},
		"a cable with IPv4 and IPv6 is one": {
			[]string{"eth0 fd00::1/64", "eth0 10.0.0.1/24"}, []string{"eth0 fd00::2/64", "eth0 10.0.0.2/24"}, nil, []Pair{{1, 1}}},
		"a cable with IPv6 only": {
			[]string{"eth0 10.0.0.1/24", "eth1 fd01::1/64"}, []string{"eth0 10.0.0.2/24", "eth1 fd01::2/64"}, nil, []Pair{{0, 0}, {1, 1}}},
		"what the base uses is used": {
			[]string{"eth0 10.0.0.1/24", "eth0 fd00::1/64", "eth1 10.0.1.1/24"}, []string{"eth0 10.0.0.2/24", "eth0 fd00::2/64", "eth1 10.0.1.2/24"},
			[]Pair{{0, 0}}, []Pair{{2, 2}}},
		"link-local ones tell no cables apart": {[]string{"eth0 fe80::1/64", "eth1 169.254.0.1/16"}, []string{"eth0 fe80::2/64", "eth1 169.254.0.2/16"}, nil, nil},
		"an unknown prefix":                    {[]string{"eth0 10.0.0.1/0"}, []string{"eth0 10.0.0.2/0"}, nil, nil},
		"no address":                           {nil, []string{"eth0 10.0.0.2/24"}, nil, nil},
	} {
		assert.Equal(t, tc.want, Match(at(t, tc.lower...), at(t, tc.higher...), tc.taken...), name)
	}
}

// few addresses of few subnets and interfaces, so that all collide.
func few() *rapid.Generator[[]Address] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Address {
		name := rapid.SampledFrom([]string{"eth0", "eth1", "eth2"}).Draw(t, "name")
		subnet, host := rapid.ByteMax(3).Draw(t, "subnet"), rapid.ByteRange(1, 6).Draw(t, "host")
		if rapid.Bool().Draw(t, "four") {
			return Address{name, netip.AddrFrom4([4]byte{10, 0, subnet, host}), rapid.SampledFrom([]int{0, 16, 24, 30, 32}).Draw(t, "bits")}
		}
		return Address{name, netip.AddrFrom16([16]byte{0: 0xfd, 7: subnet, 15: host}), rapid.SampledFrom([]int{64, 56, 128}).Draw(t, "bits")}
	}), 0, 8)
}

func TestEveryMatchIsOfUnusedThings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lower, higher := few().Draw(t, "lower"), few().Draw(t, "higher")
		var taken []Pair
		if len(lower) > 0 && len(higher) > 0 && rapid.Bool().Draw(t, "base") {
			taken = append(taken, Pair{rapid.IntRange(0, len(lower)-1).Draw(t, "l"), rapid.IntRange(0, len(higher)-1).Draw(t, "h")})
		}
		pairs := Match(lower, higher, taken...)
		require.Equal(t, pairs, Match(lower, higher, taken...), "both ranks find the same")
		used := map[any]bool{}
		use := func(p Pair, check bool) {
			l, h := lower[p.Lower], higher[p.Higher]
			for _, thing := range []any{"lower " + l.Addr.String(), "higher " + h.Addr.String(), "subnet " + l.subnet().String(), l.Interface + " to " + h.Interface} {
				require.False(t, check && used[thing], "%v twice in %v", thing, pairs)
				used[thing] = true
			}
		}
		for _, p := range taken {
			use(p, false)
			used["subnet "+higher[p.Higher].subnet().String()] = true
		}
		last := -1
		for _, p := range pairs {
			l, h := lower[p.Lower], higher[p.Higher]
			require.Equal(t, l.Bits, h.Bits)
			require.Equal(t, netip.PrefixFrom(l.Addr, l.Bits).Masked(), netip.PrefixFrom(h.Addr, h.Bits).Masked())
			require.Greater(t, p.Lower, last, "in the lower rank's order")
			last = p.Lower
			use(p, true)
		}
		// Nothing was left that could have been paired.
		for i, l := range lower {
			for _, h := range higher {
				left := SameSubnet(l, h) && !used["lower "+l.Addr.String()] && !used["higher "+h.Addr.String()] &&
					!used["subnet "+l.subnet().String()] && !used[l.Interface+" to "+h.Interface]
				require.False(t, left, "%d: %v and %v", i, l, h)
			}
		}
	})
}

func TestAMatchSeenFromBothEndsHasTheSameSubnets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// One address a subnet and end, as Choose gives for a well-made host: then the roles may be swapped.
		end := func(last byte) []Address {
			var all []Address
			for _, i := range rapid.Permutation([]byte{0, 1, 2, 3}).Draw(t, "order") {
				if rapid.Bool().Draw(t, "there") {
					all = append(all, Address{fmt.Sprintf("eth%d", i), netip.AddrFrom4([4]byte{10, 0, i, last}), 24})
				}
			}
			return all
		}
		a, b := end(1), end(2)
		subnets := map[netip.Prefix]bool{}
		for _, p := range Match(a, b) {
			subnets[a[p.Lower].subnet()] = true
		}
		for _, p := range Match(b, a) {
			require.True(t, subnets[b[p.Lower].subnet()])
			delete(subnets, b[p.Lower].subnet())
		}
		require.Empty(t, subnets)
	})
}
