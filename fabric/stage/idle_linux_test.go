package stage_test

import (
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func spent(t *testing.T) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// An idle group costs next to nothing, with a plan that may be replayed too; a call that waits for its stream little.
func TestAnIdleGroupLeavesTheCPUAlone(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 1})
	for name, c := range map[string]struct {
		gate       stage.Gate
		plan, held bool
		most       time.Duration // a second
	}{
		"words":               {stage.Words, false, false, 20 * time.Millisecond},
		"kernels":             {stage.Kernels, false, false, 20 * time.Millisecond},
		"kernels with a plan": {stage.Kernels, true, false, 20 * time.Millisecond},
		"words on hold":       {stage.Words, false, true, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := openHIP(t, w, 1, stage.Config{Gate: c.gate}, nil)
			release := func() {}
			if c.plan {
				_, err := ranks[0].Capture(ranks[0].stream())
				require.NoError(t, err)
			}
			if c.held {
				var err error
				release, err = ranks[0].hold()
				require.NoError(t, err)
				require.NoError(t, ranks[0].Barrier(ranks[0].stream()))
			}
			<-time.After(200 * time.Millisecond)
			before := spent(t)
			<-time.After(time.Second)
			took := spent(t) - before
			t.Log(took)
			assert.Less(t, took, 10*c.most, "of CPU in a second; an idle machine takes a tenth")
			release()
			done(t, ranks)
		})
	}
}
