package rail

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestSelectorsChooseAndExclude(t *testing.T) {
	for _, tc := range []struct {
		selectors []string
		name, at  string
		want      bool
	}{
		{nil, "eth0", "10.0.0.1", true},
		{[]string{"eth"}, "eth0", "10.0.0.1", true},
		{[]string{"eth"}, "wlan0", "10.0.0.1", false},
		{[]string{"=eth1"}, "eth1", "10.0.0.1", true},
		{[]string{"=eth1"}, "eth10", "10.0.0.1", false},
		{[]string{"^docker"}, "docker0", "10.0.0.1", false},
		{[]string{"^docker"}, "eth0", "10.0.0.1", true},
		{[]string{"^=eth1"}, "eth10", "10.0.0.1", true},
		{[]string{"^=eth1"}, "eth1", "10.0.0.1", false},
		{[]string{"10.0.0.0/8"}, "eth1", "10.9.0.1", true},
		{[]string{"10.0.0.0/8"}, "eth1", "11.0.0.1", false},
		{[]string{"10.1.2.3/8"}, "eth1", "10.9.0.1", true},
		{[]string{"fd00::/8"}, "eth1", "fd12::1", true},
		{[]string{"fd00::/8"}, "eth1", "10.9.0.1", false},
		{[]string{"10.0.0.0/8", "^10.9.0.0/16"}, "eth1", "10.9.0.1", false},
		{[]string{"10.0.0.0/8", "^10.9.0.0/16"}, "eth1", "10.8.0.1", true},
		{[]string{"eth", "10.0.0.0/8"}, "usb4", "10.8.0.1", true},
		{[]string{"eth", "^eth"}, "eth0", "10.8.0.1", false},
	} {
		s, err := Parse("Rails", tc.selectors)
		require.NoError(t, err, "%q", tc.selectors)
		assert.Equal(t, tc.want, s.Allow(tc.name, netip.MustParseAddr(tc.at)), "%q of %s %s", tc.selectors, tc.name, tc.at)
	}
}

func TestABadSelectorIsNamed(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", `Rails[1] is "": it names nothing`},
		{"^", "it names nothing"},
		{"=", "it names nothing"},
		{"^=", "it names nothing"},
		{"10.0.0.0/33", `Rails[1] is "10.0.0.0/33": it is no CIDR`},
		{"=10.0.0.0/8", "it is no CIDR"},
		{"eth0/24", "it is no CIDR"},
		{"10.0.0.1", "an address alone says no subnet, write 10.0.0.1/32"},
		{"fd00::1", "an address alone says no subnet, write fd00::1/128"},
		{"eth0,eth1", "no interface has such a name"},
		{"==eth0", "no interface has such a name"},
		{"eth 0", "no interface has such a name"},
		{strings.Repeat("x", 65), "it has 65 bytes, and at most 64 are allowed"},
	} {
		_, err := Parse("Rails", []string{"eth", tc.text})
		require.ErrorIs(t, err, fabric.ErrInvalid, tc.text)
		assert.ErrorContains(t, err, tc.want)
		assert.ErrorContains(t, err, "an interface prefix (eth), =exact (=eth1) or CIDR (10.0.0.0/8) is needed, with ^ before it to exclude")
	}
	_, err := Parse("Rails", make([]string, 33))
	assert.ErrorContains(t, err, "Rails has 33 selectors; at most 32 are allowed")
}

func TestSelectorsThatFindNothingAreRefused(t *testing.T) {
	all := []Interface{
		{Name: "lo", Up: true, Loopback: true, Addresses: prefixes("127.0.0.1/8")},
		{Name: "eth0", Up: true, Addresses: prefixes("10.0.0.1/24", "fd00::1/64")},
		{Name: "eth1", Up: true},
		{Name: "eth2", Addresses: prefixes("10.0.2.1/24")},
	}
	const there = "; there are: eth0 (10.0.0.1/24 fd00::1/64), eth1 (no address)"
	for _, tc := range []struct {
		selectors []string
		want      string
	}{
		{nil, ""},
		{[]string{"^eth"}, ""},
		{[]string{"ethx", "eth0"}, ""},
		{[]string{"ethx"}, `Rails[0] "ethx" matches no interface that is up and has an address` + there},
		{[]string{"=eth1", "^10.0.0.0/8"}, `Rails ["=eth1" "^10.0.0.0/8"] match no interface that is up and has an address` + there},
		{[]string{"=eth2"}, there},
		{[]string{"=lo"}, there},
	} {
		s, err := Parse("Rails", tc.selectors)
		require.NoError(t, err)
		err = s.Check(all)
		if tc.want == "" {
			assert.NoError(t, err, "%q", tc.selectors)
			continue
		}
		assert.ErrorIs(t, err, fabric.ErrInvalid, "%q", tc.selectors)
		assert.ErrorContains(t, err, tc.want)
	}
	s, err := Parse("Rails", []string{"eth"})
	require.NoError(t, err)
	assert.ErrorContains(t, s.Check(nil), "there are: none")
}

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}
