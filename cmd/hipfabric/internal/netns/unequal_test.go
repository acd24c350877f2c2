//go:build linux && !race

package netns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hipfabric/hipfabric"
)

// Other work on this machine only ever lowers what is measured: the best of a few runs counts, and the test asserts no more
// than what a scheduler that leaves a rail idle misses. Rates mean nothing under the race detector.
func TestRailsOfOneAndFourAreBothFilled(t *testing.T) {
	const unit, size = 2.5e6, 8 << 20 // bytes a second, a block
	const bar, least = 4.5, 4.1       // of 5: what is enough at once; more than the fast rail alone carries
	slow, fast := weather{Rate: unit, Queue: 50 * time.Millisecond}, weather{Rate: 4 * unit, Queue: 50 * time.Millisecond}
	alone := func(w weather) float64 { return under(t, w).rate(t, hipfabric.Config{}, size, 3*time.Second) }
	best := 0.0
	for range 3 {
		one, four := alone(slow), alone(fast)
		both := under(t, slow, fast).rate(t, hipfabric.Config{}, size, 3*time.Second)
		t.Logf("RESULT: %.2f and %.2f MB/s alone, %.2f together: %.2f of 5 (the bar: %.1f)", one/1e6, four/1e6, both/1e6, 5*both/(one+four), bar)
		if best = max(best, 5*both/(one+four)); best >= bar {
			return
		}
	}
	assert.Greater(t, best, least)
}
