//go:build rxevm

package selftest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cable joins two network namespaces, "near" 10.9.0.1 and "far" 10.9.0.2, for the length of a test.
func cable(t *testing.T) {
	for _, host := range []string{"near", "far"} {
		run(t, "ip", "netns", "add", host)
		t.Cleanup(func() { run(t, "ip", "netns", "del", host) })
	}
	run(t, "ip", "-n", "near", "link", "add", "port", "type", "veth", "peer", "name", "port", "netns", "far")
	for host, address := range map[string]string{"near": "10.9.0.1/24", "far": "10.9.0.2/24"} {
		run(t, "ip", "-n", host, "addr", "add", address, "dev", "port")
		run(t, "ip", "-n", host, "link", "set", "port", "up")
	}
}

// shape gives what "near" sends a queueing discipline.
func shape(t *testing.T, discipline string) {
	t.Helper()
	run(t, "tc", append([]string{"-n", "near", "qdisc", "replace", "dev", "port", "root"}, strings.Fields(discipline)...)...)
}

// pings are what ping said: the sequence numbers of the answers in their order, and their mean round trip.
type pings struct {
	answers []int
	mean    float64 // ms
	said    string
}

func ping(t *testing.T, args string) pings {
	t.Helper()
	// Some of the answers may be missing, and ping's status is 0 with any.
	said := run(t, "ip", append([]string{"netns", "exec", "near", "ping"}, append(strings.Fields(args), "10.9.0.2")...)...)
	p := pings{said: said}
	for _, m := range regexp.MustCompile(`seq=(\d+) `).FindAllStringSubmatch(said, -1) {
		seq, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		p.answers = append(p.answers, seq)
	}
	m := regexp.MustCompile(`min/avg/max = [0-9.]+/([0-9.]+)/`).FindStringSubmatch(said)
	require.NotNil(t, m, said)
	var err error
	p.mean, err = strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return p
}

func TestACleanCableLosesNothing(t *testing.T) {
	cable(t)
	p := ping(t, "-c 200 -i 0.002")
	assert.Len(t, p.answers, 200)
	assert.True(t, slices.IsSorted(p.answers))
}

func TestNetemLosesAndDelays(t *testing.T) {
	cable(t)
	shape(t, "netem loss 1% delay 20ms")
	const sent = 2000
	p := ping(t, "-c 2000 -i 0.002 -W 5")
	lost := sent - len(p.answers)
	assert.Positive(t, lost)
	assert.Less(t, lost, sent/10)
	assert.GreaterOrEqual(t, p.mean, 20.0)
	t.Logf("RESULT: loss 1%% delay 20ms: %d of %d lost, mean round trip %.1f ms", lost, sent, p.mean)
}

func TestNetemCorruptsWhatTheChecksumCatches(t *testing.T) {
	cable(t)
	ping(t, "-c 1 -W 5") // the neighbour is known from here on: a spoilt ARP would lose them all
	shape(t, "netem corrupt 50%")
	p := ping(t, "-c 200 -i 0.002 -W 5")
	assert.Less(t, len(p.answers), 180)
}

func TestNetemReorders(t *testing.T) {
	cable(t)
	shape(t, "netem delay 50ms reorder 30%")
	p := ping(t, "-c 200 -i 0.002 -W 5")
	assert.Greater(t, len(p.answers), 150)
	assert.False(t, slices.IsSorted(p.answers), p.said)
}

// A ping of 1000 bytes has 1042 with its headers: 104 ms at 80 kbit/s, for each that is ahead of it.
func TestNetemAndTbfLimitTheRate(t *testing.T) {
	cable(t)
	for _, discipline := range []string{"netem rate 80kbit", "tbf rate 80kbit burst 1600 latency 30s"} {
		shape(t, discipline)
		p := ping(t, "-c 20 -i 0.01 -s 1000 -W 30") // which does not wait for all answers
		assert.Greater(t, p.mean, 300.0, "%s: %s", discipline, p.said)
	}
}
