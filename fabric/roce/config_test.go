package roce

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestTheZeroConfigHasTheDocumentedDefaults(t *testing.T) {
	var c Config
	require.NoError(t, c.Validate())
	d := c.withDefaults()
	assert.Equal(t, "host", d.Channel)
	assert.Equal(t, []int{32 << 10, 64 << 10, 8}, []int{d.EagerBytes, d.SlotBytes, d.Slots})
	assert.Equal(t, 6, d.Retries)
	assert.Equal(t, 67108864*time.Nanosecond, d.PacketTimeout)
	assert.Equal(t, 30*time.Second, d.Timeout)
	assert.Equal(t, time.Millisecond, d.SpinFor)
	assert.Equal(t, 0, d.Stripes)
	assert.Equal(t, OrderAuto, d.Order)
	assert.NotNil(t, d.Addresses)
	assert.NotNil(t, d.Logger)
	e := d.withDefaults()
	e.Addresses, d.Addresses = nil, nil
	assert.Equal(t, d, e, "defaults of defaults are the same")
	c.SpinFor = -1
	assert.Equal(t, time.Duration(0), c.withDefaults().SpinFor, "negative is none")
}

func TestAnEagerSpanFitsIntoASlot(t *testing.T) {
	for _, tc := range []struct{ eager, slot, wantEager, wantSlot int }{
		{0, 4096, 4096, 4096},
		{0, 1 << 20, DefaultEagerBytes, 1 << 20},
		{100_000, 0, 100_000, 100_032},
		{1, 64, 1, 64},
	} {
		c := Config{EagerBytes: tc.eager, SlotBytes: tc.slot}
		require.NoError(t, c.Validate())
		d := c.withDefaults()
		assert.Equal(t, []int{tc.wantEager, tc.wantSlot}, []int{d.EagerBytes, d.SlotBytes})
	}
}

func TestASettingOutOfRangeIsNamedWithItsValueAndBound(t *testing.T) {
	for _, tc := range []struct {
		change func(*Config)
		want   []string
	}{
		{func(c *Config) { c.Channel = strings.Repeat("x", 65) }, []string{"Channel has 65 bytes", "64"}},
		{func(c *Config) { c.HCAs = make([]string, 33) }, []string{"HCAs has 33", "32"}},
		{func(c *Config) { c.HCAs = []string{"a:0"} }, []string{`HCAs[0] is "a:0"`, "1..255"}},
		{func(c *Config) { c.Stripes = 9 }, []string{"Stripes is 9", "8"}},
		{func(c *Config) { c.Stripes = -1 }, []string{"Stripes is -1"}},
		{func(c *Config) { c.SlotBytes = 100 }, []string{"SlotBytes is 100", "multiple of 64"}},
		{func(c *Config) { c.SlotBytes = 32 << 20 }, []string{"SlotBytes is 33554432", "16777216"}},
		{func(c *Config) { c.SlotBytes = -64 }, []string{"SlotBytes is -64"}},
		{func(c *Config) { c.EagerBytes = -1 }, []string{"EagerBytes is -1", "0..16777216"}},
		{func(c *Config) { c.EagerBytes = 16<<20 + 1 }, []string{"EagerBytes is 16777217", "0..16777216"}},
		{func(c *Config) { c.EagerBytes, c.SlotBytes = 65, 64 }, []string{"EagerBytes is 65", "SlotBytes, 64"}},
		{func(c *Config) { c.Slots = 2 }, []string{"Slots is 2", "4 to 1024"}},
		{func(c *Config) { c.Slots = 12 }, []string{"Slots is 12", "power of two"}},
		{func(c *Config) { c.Slots = 2048 }, []string{"Slots is 2048", "1024"}},
		{func(c *Config) { c.Slots = -8 }, []string{"Slots is -8"}},
		{func(c *Config) { c.Slots, c.SlotBytes = 1024, 16<<20 }, []string{"Slots is 1024", "SlotBytes 16777216", "268435456"}},
		{func(c *Config) { c.TrafficClass = 256 }, []string{"TrafficClass is 256", "255"}},
		{func(c *Config) { c.TrafficClass = -1 }, []string{"TrafficClass is -1"}},
		{func(c *Config) { c.Retries = 7 }, []string{"Retries is 7", "for ever", "6"}},
		{func(c *Config) { c.Retries = 8 }, []string{"Retries is 8", "1 to 6"}},
		{func(c *Config) { c.Retries = -1 }, []string{"Retries is -1"}},
		{func(c *Config) { c.PacketTimeout = -1 }, []string{"PacketTimeout is -1ns"}},
		{func(c *Config) { c.PacketTimeout = time.Minute }, []string{"PacketTimeout is 1m0s", "8.589934592s"}},
		{func(c *Config) { c.PacketTimeout = 8 * time.Second }, []string{"PacketTimeout is 8s", "7", "Timeout, 30s", "4.28"}},
		{func(c *Config) { c.Timeout = -2 }, []string{"Timeout is -2ns", "30s", "-1 for none"}},
		{func(c *Config) { c.CPUs = []int{1, -3} }, []string{"CPUs[1] is -3"}},
		{func(c *Config) { c.Order = 3 }, []string{"Order is 3", "immediate"}},
	} {
		var c Config
		tc.change(&c)
		err := c.Validate()
		require.ErrorIs(t, err, fabric.ErrInvalid, "%v", tc.want)
		for _, want := range tc.want {
			assert.ErrorContains(t, err, want)
		}
	}
}

// Devices wait up to four times as long as they are told; a dead peer must still be seen well within the group's timeout.
func TestAllTriesOfAPacketEndWithinTheTimeout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Timeout: time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(time.Hour)).Draw(t, "timeout")), Retries: rapid.IntRange(0, 6).Draw(t, "retries")}
		require.NoError(t, c.Validate())
		d := c.withDefaults()
		require.LessOrEqual(t, 4*time.Duration(d.Retries+1)*d.PacketTimeout, c.Timeout/2)
		require.GreaterOrEqual(t, d.PacketTimeout, packetLeast)
		require.LessOrEqual(t, d.PacketTimeout, packetDefault)
		steps := d.PacketTimeout / packetTick
		require.Zero(t, steps&(steps-1), "%v is no power of two of ticks", d.PacketTimeout)
	})
	c := Config{Timeout: fabric.NoTimeout}
	require.NoError(t, c.Validate())
	assert.Equal(t, packetDefault, c.withDefaults().PacketTimeout)
	c = Config{Timeout: time.Millisecond}
	require.NoError(t, c.Validate())
	assert.Equal(t, packetLeast, c.withDefaults().PacketTimeout)
}

func TestWhatMustBeAlikeIsTold(t *testing.T) {
	zero := Config{}.withDefaults()
	for name, change := range map[string]func(*Config){
		"Channel": func(c *Config) { c.Channel = "x" }, "Stripes": func(c *Config) { c.Stripes = 2 }, "EagerBytes": func(c *Config) { c.EagerBytes = 64 },
		"SlotBytes": func(c *Config) { c.SlotBytes = 128 << 10 }, "Slots": func(c *Config) { c.Slots = 16 },
		"Order": func(c *Config) { c.Order = OrderImmediate }, "Verify": func(c *Config) { c.Verify = true },
	} {
		var other Config
		change(&other)
		require.NoError(t, other.Validate())
		other = other.withDefaults()
		var differ []string
		a, b := zero.settings(), other.settings()
		require.Len(t, b, len(a))
		for i := range a {
			if a[i] != b[i] {
				differ = append(differ, a[i].name)
			}
		}
		assert.Equal(t, []string{name}, differ)
	}
	assert.LessOrEqual(t, len(zero.settings()), maxSettings)
}
