//go:build linux

package netns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hipfabric/hipfabric"
)

// Other work on this machine only ever lowers what is measured: the best of a few runs counts.
func TestRailsOfOneAndFourAreBothFilled(t *testing.T) {
	if raceDetector {
		t.Skip("rates mean nothing under the race detector")
	}
	const unit, size, bar = 2.5e6, 8 << 20, 4.5 // bytes a second, a block, of 5
	slow, fast := weather{Rate: unit, Queue: 50 * time.Millisecond}, weather{Rate: 4 * unit, Queue: 50 * time.Millisecond}
	alone := func(w weather) float64 { return under(t, w).rate(t, hipfabric.Config{}, size, 3*time.Second) }
	best := 0.0
	for range 3 {
		one, four := alone(slow), alone(fast)
		both := under(t, slow, fast).rate(t, hipfabric.Config{}, size, 3*time.Second)
		t.Logf("RESULT: %.2f and %.2f MB/s alone, %.2f together: %.2f of 5", one/1e6, four/1e6, both/1e6, 5*both/(one+four))
		if best = max(best, 5*both/(one+four)); best >= bar {
			return
		}
	}
	assert.GreaterOrEqual(t, best, bar)
}
