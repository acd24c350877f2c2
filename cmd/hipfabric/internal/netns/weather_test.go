//go:build linux

package netns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// under is two hosts joined by a cable for each weather.
func under(t testing.TB, each ...weather) *site {
	t.Helper()
	s := &site{hosts: Hosts(t, 2)}
	for i, w := range each {
		a, b := relay(t, s.hosts[0], s.hosts[1], Net{Number: i + 1, V4: true}, w)
		s.ports = append(s.ports, []*Port{a, b})
	}
	return s
}

// rate is how many bytes of payload a second arrive at a rank, by gathers of size bytes for about long.
func (s *site) rate(t testing.TB, c hipfabric.Config, size int, long time.Duration) float64 {
	t.Helper()
	c.VerdictBusy = time.Minute // a queue that is full delays a heartbeat too
	r := begin(t, s.group(t, c), Flow{Seed: 1, Most: size, Fixed: true})
	r.advance(2)
	first, began := r.calls(0), time.Now()
	for time.Since(began) < long {
		r.advance(1)
	}
	rounds, took := r.calls(0)-first, time.Since(began)
	r.stop()
	return float64(rounds) * float64(size) / took.Seconds()
}

func resent(rails []fabric.RailStats) (n uint64) {
	for _, rail := range rails {
		n += rail.Retransmits
	}
	return n
}

func TestBadCablesKeepEveryByte(t *testing.T) {
	for name, w := range map[string]weather{
		"1% loss":         {Loss: 0.01},
		"a delay of 20ms": {Delay: 20 * time.Millisecond},
		"reorder":         {Delay: 5 * time.Millisecond, Reorder: 0.25},
		"flipped bits":    {Flip: 0.001},
	} {
		t.Run(name, func(t *testing.T) {
			s := under(t, w, w)
			for _, verify := range []bool{false, true} {
				r := run(t, s.group(t, hipfabric.Config{Verify: verify, VerdictBusy: time.Minute}), 1, 1<<20)
				r.advance(8)
				if w.Loss > 0 {
					r.until("segments are sent again", func(rails []fabric.RailStats) bool { return resent(rails) > 0 })
				}
				r.stop()
				rails := r.rails(0)
				require.Len(t, rails, 2)
				t.Logf("RESULT: verify %v: %d and %d segments were sent again", verify, rails[0].Retransmits, rails[1].Retransmits)
			}
		})
	}
}

// Two words that change places leave TCP's checksum as it was: without Verify nothing sees it.
func TestWhatTCPsChecksumMissesIsSeenByVerifyAlone(t *testing.T) {
	s := under(t, weather{Swap: 2000})
	t.Run("with Verify", func(t *testing.T) {
		r := begin(t, s.group(t, hipfabric.Config{Verify: true}), Flow{Seed: 1, Most: most})
		for rank := range 2 {
			err := r.wait(rank)
			require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", rank)
			assert.ErrorContains(t, err, "CRC32C of a frame's payload from rank")
			t.Logf("rank %d: %v", rank, err)
		}
	})
	s = under(t, weather{Swap: 2000})
	t.Run("without", func(t *testing.T) {
		r := begin(t, s.group(t, hipfabric.Config{}), Flow{Seed: 1, Most: most})
		require.ErrorIs(t, r.wait(0), measure.ErrWrong)
	})
}

func TestSmallSocketBuffersLoseUnderDelay(t *testing.T) {
	s := under(t, weather{Delay: 20 * time.Millisecond, Queue: time.Second})
	fixed := s.rate(t, hipfabric.Config{Lanes: 1, SocketBuffer: 64 << 10}, 1<<20, 3*time.Second)
	auto := s.rate(t, hipfabric.Config{Lanes: 1}, 1<<20, 3*time.Second)
	t.Logf("RESULT: %.2f MB/s with 64 KiB, %.2f with the system's", fixed/1e6, auto/1e6)
	assert.Greater(t, auto, 1.5*fixed)
}
