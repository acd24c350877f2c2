package machine

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSNMPIsReadByName(t *testing.T) {
	text := "Ip: Forwarding\nIp: 1\nTcp: A RetransSegs B\nTcp: 1 42 3\nUdp: RetransSegs\nUdp: 9\n"
	assert.EqualValues(t, 42, snmp(text, "Tcp:", "RetransSegs"))
	assert.EqualValues(t, -1, snmp(text, "Tcp:", "Missing"))
	assert.EqualValues(t, -1, snmp("Tcp: A RetransSegs\nTcp: 1\n", "Tcp:", "RetransSegs"), "a short line")
	assert.EqualValues(t, -1, snmp("", "Tcp:", "RetransSegs"))
}

func TestTheInterfaceIsThatOfTheRoute(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is known to call its loopback lo")
	}
	for _, master := range []string{"", "file:/x", "127.0.0.1:1"} {
		n := Towards(master)
		assert.Equal(t, "lo", n.Name)
		assert.Positive(t, n.MTU)
		assert.GreaterOrEqual(t, Count(n).Retransmits, int64(0))
		assert.GreaterOrEqual(t, Count(n).Errors, int64(0))
	}
	assert.Equal(t, NIC{}, Towards("no port"))
}

func TestCountersSayWhatChanged(t *testing.T) {
	assert.Equal(t, "TCP retransmits 3 before, 5 after (+2), interface errors and drops not counted here",
		Counters{Retransmits: 5, Errors: -1}.Since(Counters{Retransmits: 3, Errors: -1}))
}
