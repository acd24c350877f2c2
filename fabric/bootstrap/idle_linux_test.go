package bootstrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// An idle rank may take a fiftieth of a core; four of them are measured together, each with its heartbeats.
func TestIdleRanksLeaveTheProcessorAlone(t *testing.T) {
	const world = 4
	zero := freePort(t)
	for name, all := range map[string][]Config{"one way": configs(t, world), "two ways": byTwoWays(t, world, zero, zero, zero)} {
		t.Run(name, func(t *testing.T) {
			s := group(t, all)
			eachHas(t, len(s[1].waysOf(0)), s...)
			isIdle(t, s)
		})
	}
}

func isIdle(t *testing.T, s []*Session) {
	used := func() time.Duration {
		var u unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const idle = 2 * time.Second
	before := used()
	pause(testContext(t), idle)
	share := float64(used()-before) / float64(idle) / float64(len(s))
	t.Logf("%.2f%% of a core a rank", 100*share)
	assert.Less(t, share, 0.02)
}
