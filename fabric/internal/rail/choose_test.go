package rail

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// host has one interface of every kind, in no order.
func host() []Interface {
	return []Interface{
		{Name: "eth1", Index: 3, Up: true, Addresses: prefixes("fd01::1/64", "10.0.1.1/24", "10.0.1.9/24", "169.254.7.1/16", "fe80::1/64", "10.7.7.7/32")},
		{Name: "lo", Index: 1, Up: true, Loopback: true, Addresses: prefixes("127.0.0.1/8", "::1/128", "10.99.0.1/24")},
		{Name: "eth0", Index: 2, Up: true, Running: true, Addresses: prefixes("10.0.0.1/24")},
		{Name: "eth2", Index: 4, Addresses: prefixes("10.0.2.1/24")},
		{Name: "docker0", Index: 5, Up: true, Bridge: true, Addresses: prefixes("172.17.0.1/16")},
		{Name: "lan", Index: 6, Up: true, Bridge: true, Addresses: prefixes("10.0.6.1/24")},
		{Name: "flannel.1", Index: 7, Up: true, Addresses: prefixes("10.42.0.0/24")},
		{Name: "veth1", Index: 8, Up: true, Enslaved: true, Addresses: prefixes("10.0.8.1/24")},
		{Name: "wg0", Index: 9, Up: true, PointToPoint: true, Addresses: prefixes("10.0.9.1/24")},
		{Name: "veth2", Index: 10, Up: true, Addresses: prefixes("10.0.10.1/31")},
	}
}

func TestWhatMayBeARail(t *testing.T) {
	for _, tc := range []struct{ selectors, want []string }{
		{nil, []string{"eth0 10.0.0.1/24", "eth1 10.0.1.1/24", "eth1 fd01::1/64", "veth2 10.0.10.1/31"}},
		{[]string{"eth1"}, []string{"eth1 10.0.1.1/24", "eth1 fd01::1/64"}},
		{[]string{"^10.0.1.0/24"}, []string{"eth0 10.0.0.1/24", "eth1 fd01::1/64", "veth2 10.0.10.1/31"}},
		{[]string{"=docker0", "lan"}, []string{"docker0 172.17.0.1/16", "lan 10.0.6.1/24"}},
		{[]string{"wg", "veth1", "flannel"}, []string{"flannel.1 10.42.0.0/24", "veth1 10.0.8.1/24", "wg0 10.0.9.1/24"}},
		{[]string{"172.16.0.0/12", "10.0.0.0/16"}, []string{"eth0 10.0.0.1/24", "eth1 10.0.1.1/24", "veth2 10.0.10.1/31"}},
		{[]string{"=lo", "=eth2", "169.254.0.0/16", "fe80::/10"}, nil},
	} {
		s, err := Parse("Rails", tc.selectors)
		require.NoError(t, err)
		var got []string
		for _, a := range Choose(host(), &s) {
			got = append(got, fmt.Sprintf("%s %v/%d", a.Interface, a.Addr, a.Bits))
		}
		assert.Equal(t, tc.want, got, "%q", tc.selectors)
	}
}

func TestAnAddressIsFoundWithItsPrefix(t *testing.T) {
	assert.Equal(t, Address{"eth1", netip.MustParseAddr("10.0.1.9"), 24}, Find(host(), netip.MustParseAddr("10.0.1.9")))
	assert.Equal(t, Address{"eth1", netip.MustParseAddr("fe80::1"), 64}, Find(host(), netip.MustParseAddr("fe80::1%eth1")))
	assert.Equal(t, Address{Addr: netip.MustParseAddr("10.0.1.8")}, Find(host(), netip.MustParseAddr("10.0.1.8")))
}
