//go:build linux

package netns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// shape puts the same on both ends of a cable.
func (s *site) shape(net int, discipline string) {
	for _, p := range s.ports[net] {
		p.Shape(discipline)
	}
}

func TestShapedNetworksKeepEveryByte(t *testing.T) {
	RequireShaping(t, Hosts(t, 1)[0])
	for name, discipline := range map[string]string{
		"1% loss":     "netem loss 1%",
		"20 ms delay": "netem delay 20ms",
		"reorder":     "netem delay 5ms reorder 25% 50%",
		"corruption":  "netem corrupt 0.1%",
	} {
		t.Run(name, func(t *testing.T) {
			s := twoCables().build(t)
			s.shape(0, discipline)
			s.shape(1, discipline)
			r := run(t, s.group(t, hipfabric.Config{Verify: name == "corruption", VerdictBusy: time.Minute}), 1, 256<<10)
			r.advance(10)
			r.stop()
			rails := r.rails(0)
			require.Len(t, rails, 2)
			t.Logf("RESULT: %d and %d segments were sent again", rails[0].Retransmits, rails[1].Retransmits)
		})
	}
}

// Two cables of 1 and 4 in rate, both filled, and the fast one pulled while calls go on and plugged in again.
func TestShapedUnequalCablesAreFilledAndOneIsPulled(t *testing.T) {
	RequireShaping(t, Hosts(t, 1)[0])
	const enough = 512 << 10 // an emulated guest is slow
	s := twoCables().build(t)
	s.shape(0, "tbf rate 1mbit burst 16kb latency 100ms")
	s.shape(1, "tbf rate 4mbit burst 16kb latency 100ms")
	r := run(t, s.group(t, hipfabric.Config{VerdictBusy: time.Minute}), 1, 256<<10)
	r.until("both cables carry", func(rails []fabric.RailStats) bool {
		return rails[0].SentBytes > enough && rails[1].SentBytes > enough
	})
	rails := r.rails(0)
	t.Logf("RESULT: %d bytes on the slow cable, %d on the fast one", rails[0].SentBytes, rails[1].SentBytes)
	s.ports[1][0].Pull()
	for rank, p := range s.ports[1] {
		r.logged(rank, "level=WARN", "rail lost", p.Device)
	}
	r.advance(3)
	s.ports[1][0].Plug()
	for rank, p := range s.ports[1] {
		r.logged(rank, "rail is back", p.Device)
	}
	before := r.rails(0)[1].SentBytes
	r.until("the fast cable carries again", func(rails []fabric.RailStats) bool { return rails[1].SentBytes > before+enough })
	r.stop()
}
