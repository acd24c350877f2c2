//go:build linux

package netns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
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
