package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLoopbackIsAmongTheInterfaces(t *testing.T) {
	list, err := Interfaces()
	require.NoError(t, err)
	lo := Carries(list, "127.0.0.1")
	require.NotNil(t, lo)
	assert.True(t, lo.Loopback && lo.Up && lo.Virtual())
	assert.Positive(t, lo.MTU)
	assert.Nil(t, Carries(list, "192.0.2.213"))
	assert.Nil(t, Carries(list, "no address"))
	if runtime.GOOS == "linux" {
		assert.Contains(t, Tally(lo.Name), "rx_errors")
	}
	assert.Empty(t, Tally("none"))
}

func TestAThunderboltLinkHasASpeedALane(t *testing.T) {
	assert.Equal(t, 40_000, thunderboltMbits("20.0 Gb/s", "2"))
	assert.Equal(t, 20_625, thunderboltMbits("20.625 Gb/s", "1"))
	for _, bad := range [][2]string{{"", ""}, {"20.0", "2"}, {"20.0 Gb/s", ""}, {"-1 Gb/s", "2"}, {"x Gb/s", "2"}, {"20.0 Gb/s", "99"}, {"NaN Gb/s", "1"}, {"1e99 Gb/s", "2"}} {
		assert.Zero(t, thunderboltMbits(bad[0], bad[1]), "%v", bad)
	}
}

func TestContainersAreKnownByTheirNames(t *testing.T) {
	for _, name := range []string{"docker0", "br-1234", "veth9", "cni0", "virbr0", "lxdbr0"} {
		assert.True(t, container(name), name)
	}
	for _, name := range []string{"eth0", "enp1s0", "thunderbolt0", "bond0", "br0", "lo"} {
		assert.False(t, container(name), name)
	}
}

func TestAnEnabledUFWIsSeen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ufw.conf")
	assert.False(t, ufwEnabled(file))
	for text, want := range map[string]bool{"# ENABLED=yes\nENABLED=no\n": false, "LOGLEVEL=low\nENABLED=yes\n": true, "enabled=YES": true} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		assert.Equal(t, want, ufwEnabled(file), text)
	}
}

func TestARulesetThatDropsWhatComesInIsSeen(t *testing.T) {
	chain := func(hook, policy, rule string) string {
		return "table inet filter {\n\tchain x {\n\t\ttype filter hook " + hook + " priority 0; policy " + policy + ";\n\t\t" + rule + "\n\t}\n\tchain y {\n\t\tdrop\n\t}\n}\n"
	}
	assert.True(t, dropsInput(chain("input", "drop", "")))
	assert.True(t, dropsInput(chain("input", "accept", "tcp dport 7999 drop")))
	assert.True(t, dropsInput(chain("input", "accept", "reject with icmp type admin-prohibited")))
	assert.False(t, dropsInput(chain("input", "accept", "accept")))
	assert.False(t, dropsInput(chain("forward", "drop", "")))
	assert.False(t, dropsInput(""))
}
