package roce

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
)

func anEndpoint(text string) endpoint {
	p := netip.MustParsePrefix(text)
	return endpoint{Device: "mlx5_0", Port: 1, GIDIndex: 3, GID: p.Addr().As16(), Prefix: p.Bits(), MTU: 4096, Rate: 100e9}
}

func drawEndpoint(t *rapid.T) endpoint {
	e := endpoint{
		Device: rapid.StringMatching(`[!-9;-~]{1,63}`).Draw(t, "device"), Port: rapid.IntRange(1, 255).Draw(t, "port"), GIDIndex: rapid.IntRange(0, 65535).Draw(t, "index"),
		MTU: rapid.SampledFrom([]int{256, 512, 1024, 2048, 4096}).Draw(t, "mtu"), Rate: rapid.Int64Min(0).Draw(t, "rate"),
	}
	if rapid.Bool().Draw(t, "four") {
		e.GID = netip.AddrFrom4([4]byte{10, rapid.Byte().Draw(t, "b"), 0, rapid.Byte().Draw(t, "d")}).As16()
	} else {
		e.GID = [16]byte{0: 0xfd, 1: rapid.Byte().Draw(t, "g"), 15: rapid.Byte().Draw(t, "h")}
	}
	e.Prefix = rapid.IntRange(0, e.Addr().BitLen()).Draw(t, "prefix")
	return e
}

func TestAnAdvertComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := advert{settings: someConfig(t).settings()}
		for range rapid.IntRange(0, maxPorts).Draw(t, "ends") {
			a.ends = append(a.ends, drawEndpoint(t))
		}
		seen := map[string]bool{}
		for i := range a.ends {
			if seen[a.ends[i].name()] {
				t.Skip("two of one port")
			}
			seen[a.ends[i].name()] = true
		}
		b := a.encode()
		got, err := decodeAdvert(b)
		require.NoError(t, err)
		require.Equal(t, a, got)
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		_, err = decodeAdvert(b[:cut])
		require.ErrorIs(t, err, errAdvert, "cut at %d", cut)
		_, err = decodeAdvert(append(b, 0))
		require.ErrorIs(t, err, errAdvert)
	})
}

func someConfig(t *rapid.T) *Config {
	var c Config
	c.Slots = rapid.SampledFrom([]int{4, 8, 1024}).Draw(t, "slots")
	c.Verify = rapid.Bool().Draw(t, "verify")
	d := c.withDefaults()
	return &d
}

// The bytes are on the wire between builds: a change of form needs another version.
func TestTheFormOfAnAdvert(t *testing.T) {
	a := advert{settings: []setting{{"Slots", "8"}}, ends: []endpoint{anEndpoint("10.0.0.1/24")}}
	assert.Equal(t, []byte("\x01\x01\x05Slots\x018\x01\x06mlx5_0\x01\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x01\x18\x00\x10\x00\xe8\x76\x48\x17\x00\x00\x00"), a.encode())
}

func TestTheLargestAdvertFits(t *testing.T) {
	var a advert
	for range maxSettings {
		a.settings = append(a.settings, setting{string(bytes.Repeat([]byte{'x'}, maxDeviceName)), string(bytes.Repeat([]byte{'y'}, maxSettingText))})
	}
	for i := range maxEndpoints {
		e := anEndpoint("10.0.0.1/24")
		e.Device, e.Port, e.GID[12] = string(bytes.Repeat([]byte{'d'}, maxDeviceName)), 1+i%maxPorts, byte(10+i)
		a.ends = append(a.ends, e)
	}
	b := a.encode()
	assert.Less(t, len(b), 64<<10, "what the bootstrap carries")
	got, err := decodeAdvert(b)
	require.NoError(t, err)
	assert.Equal(t, a, got)
}

func TestWhatCannotBeIsNoAdvert(t *testing.T) {
	for want, change := range map[string]func(*endpoint){
		"has no name of a device":  func(e *endpoint) { e.Device = "" },
		"has no name of a device ": func(e *endpoint) { e.Device = "a\nb" },
		"has port 0":               func(e *endpoint) { e.Port = 0 },
		"has no address of a host": func(e *endpoint) { e.GID = [16]byte{} },
		"has a prefix of 33 bits":  func(e *endpoint) { e.Prefix = 33 },
		"has an MTU of 1500 bytes": func(e *endpoint) { e.MTU = 1500 },
		"has a negative rate":      func(e *endpoint) { e.Rate = -1 },
	} {
		e := anEndpoint("10.0.0.1/24")
		change(&e)
		_, err := decodeAdvert((&advert{ends: []endpoint{e}}).encode())
		require.ErrorIs(t, err, errAdvert, want)
		assert.ErrorContains(t, err, string(bytes.TrimSpace([]byte(want))))
	}
	e := anEndpoint("10.0.0.1/24")
	_, err := decodeAdvert((&advert{ends: []endpoint{e, e}}).encode())
	assert.ErrorContains(t, err, "is there twice")
	_, err = decodeAdvert((&advert{settings: []setting{{"a\nb", "1"}}}).encode())
	assert.ErrorContains(t, err, "has no name of one")
	_, err = decodeAdvert([]byte{2, 0, 0})
	assert.ErrorContains(t, err, "of version 1, but of 2: all ranks need one build")
	_, err = decodeAdvert((&advert{settings: repeated(maxSettings + 1)}).encode())
	assert.ErrorContains(t, err, "a count or length in them is too large")
	var many advert
	for i := range maxPorts + 1 {
		e := anEndpoint("10.0.0.1/24")
		e.Port = 1 + i
		many.ends = append(many.ends, e)
	}
	_, err = decodeAdvert(many.encode())
	assert.ErrorContains(t, err, "it has 17 ports; at most 16")
}

func repeated(n int) (all []setting) {
	for range n {
		all = append(all, setting{"a", "1"})
	}
	return all
}

func FuzzAdvert(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{1, 0, 0})
	f.Add([]byte{1, 255, 255, 255})
	d := Config{}.withDefaults()
	f.Add((&advert{d.settings(), []endpoint{anEndpoint("10.0.0.1/24"), anEndpoint("fd00::1/64")}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAdvert(b)
		if err != nil {
			require.ErrorIs(t, err, errAdvert)
			return
		}
		require.Equal(t, b, a.encode(), "one form for each advert")
		_, _, err = circuits([][]endpoint{a.ends, a.ends}, 0)
		if err != nil {
			require.ErrorIs(t, err, fabric.ErrUnsupported)
		}
	})
}

func TestSettingsThatDifferAreNamedWithBothValues(t *testing.T) {
	blob := func(settings ...setting) []byte { return (&advert{settings: settings}).encode() }
	for _, tc := range []struct {
		blobs [][]byte
		peer  int
		want  string
	}{
		{[][]byte{blob(setting{"Slots", "8"}), blob(setting{"Slots", "8"}), blob(setting{"Slots", "16"})}, 2, `mismatch: Slots: rank 0 has "8", rank 2 has "16"; all ranks must have the same`},
		{[][]byte{blob(setting{"Slots", "8"}), blob(setting{"Slits", "8"})}, 1, `rank 0 has a setting Slots, rank 1 Slits; all ranks need one build`},
		{[][]byte{blob(setting{"Slots", "8"}), blob()}, 1, `rank 0 has a setting Slots, rank 1 nothing`},
		{[][]byte{blob(), blob(setting{"Slots", "8"})}, 1, `rank 0 has a setting nothing, rank 1 Slots`},
		{[][]byte{blob(), {}}, 1, "rank 1 sent what is not an advert of version 1, but of 0"},
		{[][]byte{{1}, blob()}, 0, "rank 0 sent what is not an advert: 1 bytes are too few"},
	} {
		_, err := readAdverts(tc.blobs)
		require.ErrorIs(t, err, fabric.ErrMismatch)
		assert.ErrorContains(t, err, tc.want)
		assert.Equal(t, tc.peer, fabric.CauseOf(err).Peer)
	}
}
