package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/rail"
)

func brief(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(testContext(t), d)
	t.Cleanup(cancel)
	return ctx
}

// at reads a rank's place: "10.0.0.2>10.0.0.1 eth0=10.0.0.2/24 !eth1=10.0.1.2/24" is from and met, then what it
// advertises, of which its Rails do not choose those with an exclamation mark.
func at(t require.TestingT, host uint64, text string) place {
	p := place{net: host}
	for _, word := range strings.Fields(text) {
		if from, met, ok := strings.Cut(word, ">"); ok {
			p.from, p.met = netip.MustParseAddr(from), netip.MustParseAddr(met)
			continue
		}
		word, hidden := strings.CutPrefix(word, "!")
		device, prefix, ok := strings.Cut(word, "=")
		require.True(t, ok, word)
		n := netip.MustParsePrefix(prefix)
		p.listen = append(p.listen, address{at: netip.AddrPortFrom(n.Addr(), 9), bits: n.Bits(), device: device, chosen: !hidden})
	}
	return p
}

func TestWaysOfAPair(t *testing.T) {
	for name, tc := range map[string]struct {
		zero, lower, higher string // what rank 0, 1 and 2 advertise
		want                string // the rails of ranks 1 and 2
		base                string // of ranks 0 and 2
	}{
		"a network and a cable": {
			"eth0=10.0.0.1/24", "10.0.0.2>10.0.0.1 eth0=10.0.0.2/24 usb1=10.0.5.1/30", "10.0.0.3>10.0.0.1 eth0=10.0.0.3/24 usb7=10.0.5.2/30",
			"eth0 10.0.0.2-10.0.0.3, usb1 10.0.5.1-10.0.5.2", "eth0 10.0.0.1-10.0.0.3"},
		"a ring of cables has no network": {
			"a=10.0.1.1/24 b=10.0.2.1/24", "10.0.1.2>10.0.1.1 a=10.0.1.2/24 c=10.0.3.1/24", "10.0.2.2>10.0.2.1 b=10.0.2.2/24 c=10.0.3.2/24",
			"c 10.0.3.1-10.0.3.2", "b 10.0.2.1-10.0.2.2"},
		"only a route joins them": {
			"eth0=10.0.0.1/24", "10.0.1.2>10.0.0.1 eth0=10.0.1.2/24", "10.0.2.2>10.0.0.1 eth0=10.0.2.2/24",
			"eth0 10.0.1.2-10.0.2.2", "eth0 10.0.0.1-10.0.2.2"},
		"a base that is not chosen stands back": {
			"!eth0=10.0.0.1/24 usb=10.0.5.1/24", "10.0.0.2>10.0.0.1 !eth0=10.0.0.2/24 usb=10.0.5.2/24", "10.0.0.3>10.0.0.1 !eth0=10.0.0.3/24 usb=10.0.5.3/24",
			"usb 10.0.5.2-10.0.5.3", "usb 10.0.5.1-10.0.5.3"},
		"a base that is not chosen is all there is": {
			"!eth0=10.0.0.1/24", "10.0.0.2>10.0.0.1 !eth0=10.0.0.2/24", "10.0.0.3>10.0.0.1 eth0=10.0.0.3/24",
			"eth0 10.0.0.2-10.0.0.3", "eth0 10.0.0.1-10.0.0.3"},
		"both families of the base's cable are one": {
			"eth0=10.0.0.1/24 eth0=fd00::1/64", "10.0.0.2>10.0.0.1 eth0=10.0.0.2/24 eth0=fd00::2/64", "fd00::3>fd00::1 eth0=fd00::3/64 eth0=10.0.0.3/24",
			"eth0 10.0.0.2-10.0.0.3", "eth0 fd00::1-fd00::3"},
		"a link-local base": {
			"eth0=fe80::1/64 usb=10.0.5.1/24", "fe80::2>fe80::1 eth0=fe80::2/64 usb=10.0.5.2/24", "fe80::3>fe80::1 eth0=fe80::3/64 usb=10.0.5.3/24",
			"usb 10.0.5.2-10.0.5.3", "eth0 fe80::1-fe80::3, usb 10.0.5.1-10.0.5.3"},
		"an address that is translated on the way": {
			"eth0=10.0.0.1/24", "192.0.2.2>203.0.113.1 eth0=192.0.2.2/24", "192.0.2.3>203.0.113.1 eth0=192.0.2.3/24",
			"eth0 192.0.2.2-192.0.2.3", "route 203.0.113.1-192.0.2.3"},
	} {
		places := []place{at(t, 1, tc.zero), at(t, 2, tc.lower), at(t, 3, tc.higher)}
		texts := func(me, peer int) string {
			var all []string
			for i, w := range waysTo(places, me, peer) {
				assert.Equal(t, i, w.Index)
				all = append(all, w.String())
			}
			return strings.Join(all, ", ")
		}
		assert.Equal(t, tc.want, texts(1, 2), name)
		assert.Equal(t, tc.base, texts(0, 2), name)
	}
}

func TestRanksOfOneHostHaveOneRail(t *testing.T) {
	places := []place{at(t, 1, "eth0=10.0.0.1/24 eth1=10.0.1.1/24"), at(t, 1, "10.0.0.1>10.0.0.1 eth0=10.0.0.1/24 eth1=10.0.1.9/24")}
	ways := waysTo(places, 0, 1)
	require.Len(t, ways, 1)
	assert.Equal(t, fabric.Rail{Local: netip.MustParseAddr("10.0.0.1"), Remote: netip.MustParseAddr("10.0.0.1"), SameHost: true}, ways[0].Rail)
}

// Whatever ranks advertise, both ends draw the same rails.
func TestBothEndsAgreeOnTheRails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr := rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{10, 0, rapid.ByteMax(3).Draw(t, "subnet"), rapid.ByteRange(1, 9).Draw(t, "host")})
		})
		places := make([]place, 3)
		for r := range places {
			places[r] = place{net: rapid.Uint64Max(3).Draw(t, "net"), from: addr.Draw(t, "from"), met: addr.Draw(t, "met")}
			for range rapid.IntRange(0, 5).Draw(t, "addresses") {
				places[r].listen = append(places[r].listen, address{at: netip.AddrPortFrom(addr.Draw(t, "addr"), 9), bits: rapid.SampledFrom([]int{0, 24, 24, 30}).Draw(t, "bits"),
					device: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "device"), chosen: rapid.Bool().Draw(t, "chosen")})
			}
		}
		for me := range places {
			for peer := range places {
				if me == peer {
					continue
				}
				mine, theirs := waysTo(places, me, peer), waysTo(places, peer, me)
				require.NotEmpty(t, mine)
				require.Len(t, theirs, len(mine))
				for i := range mine {
					require.Equal(t, []any{mine[i].Local, mine[i].Remote, mine[i].to, mine[i].SameHost}, []any{theirs[i].Remote, theirs[i].Local, theirs[i].to, theirs[i].SameHost})
				}
			}
		}
	})
}

func TestRailsThatFindNothingEndTheJoin(t *testing.T) {
	for _, c := range withMaster(configs(t, 2), freePort(t)) {
		c.Rails = []string{"ethx"}
		c.list = func() ([]rail.Interface, error) {
			return []rail.Interface{{Name: "eth0", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}}, nil
		}
		_, err := Join(testContext(t), c)
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, `Rails[0] "ethx" matches no interface that is up and has an address; there are: eth0 (10.0.0.1/24)`)
	}
}

func TestASystemThatListsNothingHasTheBase(t *testing.T) {
	all := configs(t, 2)
	for r := range all {
		all[r].list = func() ([]rail.Interface, error) { return nil, errors.New("not here") }
	}
	s := group(t, all)
	assert.Len(t, s[0].Rails(1), 1)
	assert.Empty(t, s[0].Rails(0))
	assert.Empty(t, s[0].Rails(2))
}

// What is listened on beyond the base, without asking the system.
func TestWhereCablesAreListenedOn(t *testing.T) {
	lan := func() ([]rail.Interface, error) {
		all := []rail.Interface{{Name: "lo", Index: 1, Up: true, Loopback: true, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}}
		for i := range 20 {
			all = append(all, rail.Interface{Name: fmt.Sprintf("eth%d", i), Index: i + 2, Up: true,
				Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}), 24)}})
		}
		return all, nil
	}
	base := func(text string) []netip.AddrPort { return addrPorts(text) }
	for name, tc := range map[string]struct {
		cfg  Config
		base []netip.AddrPort
		want int
	}{
		"beyond loopback, up to the bound": {Config{Secret: testSecret}, base("10.0.0.1:1"), maxListen - 1},
		"insecure":                         {Config{Insecure: true}, base("10.0.0.1:1"), maxListen - 1},
		"as chosen":                        {Config{Secret: testSecret, Rails: []string{"=eth0", "=eth3"}}, base("10.0.0.1:1"), 1},
		"without a secret":                 {Config{}, base("10.0.0.1:1"), 0},
		"on loopback":                      {Config{Secret: testSecret}, base("127.0.0.1:1"), 0},
		"as Listen says":                   {Config{Secret: testSecret, Listen: []string{"10.0.0.1:0"}}, base("10.0.0.1:1"), 0},
	} {
		tc.cfg.World, tc.cfg.list = 2, lan
		s := newSession(tc.cfg.withDefaults())
		require.NoError(t, s.look())
		cables := s.cables(tc.base)
		assert.Len(t, cables, tc.want, name)
		for _, c := range cables {
			assert.NotEqual(t, "eth0", c.Interface, "the base is listened on already")
		}
		s.end()
	}
}

func TestAConnectionByAnotherWayIsRefused(t *testing.T) {
	ctx := testContext(t)
	all := configs(t, 2)
	var log lockedBuffer
	all[0].Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := group(t, all)
	// Both ends believe in a second rail, but rank 1 does not dial its address.
	for r := range s {
		w := s[r].ways[1-r][0]
		w.Index, w.Local, w.to = 1, netip.MustParseAddr("127.0.0.7"), addrPorts(s[0].listener.addresses()[0])[0]
		if r == 1 {
			w.Local = netip.MustParseAddr("127.0.0.1")
		}
		s[r].ways[1-r] = append(s[r].ways[1-r], w)
	}
	c, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host", Rail: 1})
	require.NoError(t, err)
	defer c.Close()
	_, err = s[0].Accept(brief(t, 300*ms), 1, fabric.Lane{Channel: "host", Rail: 1})
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.True(t, hungUp(c))
	assert.Contains(t, log.String(), "a data connection came by another way than its rail, and was refused")
	assert.NoError(t, s[0].Cause())
}

func TestAcceptWaitsForItsGenerationAndRail(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	c, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host", Generation: 1})
	require.NoError(t, err)
	defer c.Close()
	_, err = s[0].Accept(brief(t, 50*ms), 1, fabric.Lane{Channel: "host"})
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	a, err := s[0].Accept(ctx, 1, fabric.Lane{Channel: "host", Generation: 1})
	require.NoError(t, err)
	defer a.Close()
	for _, call := range []func() (*net.TCPConn, error){
		func() (*net.TCPConn, error) { return s[0].Accept(ctx, 1, fabric.Lane{Channel: "host", Rail: 1}) },
		func() (*net.TCPConn, error) { return s[1].Dial(ctx, 0, fabric.Lane{Channel: "host", Rail: 1}) },
	} {
		_, err = call()
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, "rail is 1; rank")
	}
}

func TestABadAddressInATableIsRefused(t *testing.T) {
	good := address{at: netip.MustParseAddrPort("10.0.0.1:1"), bits: 32, device: strings.Repeat("x", maxDevice)}
	table := func(change func(a *address), mend func(b []byte)) error {
		a := good
		change(&a)
		b := encodePlaces([]place{{listen: []address{a}}})
		if mend != nil {
			mend(b)
		}
		_, err := decodePlaces(b)
		return err
	}
	require.NoError(t, table(func(*address) {}, nil))
	const at = 1 + 2 + 8 + 8 + 1 + 1 + 1 // where the address's length stands
	for name, err := range map[string]error{
		"bits beyond the address": table(func(a *address) { a.bits = 33 }, nil),
		"a long interface":        table(func(a *address) { a.device += "x" }, nil),
		"no address":              table(func(a *address) { a.at, a.bits = netip.AddrPort{}, 0 }, nil),
		"another length":          table(func(*address) {}, func(b []byte) { b[at] = 5 }),
		"a flag of 2":             table(func(*address) {}, func(b []byte) { b[len(b)-1] = 2 }),
		"IPv4 in IPv6": table(func(a *address) { a.at = netip.MustParseAddrPort("[::a:0:1]:1") }, func(b []byte) {
			copy(b[at+1:], []byte{10: 0xff, 11: 0xff})
		}),
	} {
		assert.ErrorIs(t, err, errFrame, name)
	}
	var w writer
	w.place(&place{listen: slices.Repeat([]address{good}, maxListen+1)})
	r := reader{b: w}
	r.place()
	assert.True(t, r.bad, "more addresses than a rank may have")
}
