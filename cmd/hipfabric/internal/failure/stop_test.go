//go:build unix

package failure

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// asleep is how long a rank is stopped while others wait for it.
const asleep = 3 * time.Second

func TestAStoppedRankIsNamedAndAccusesNobody(t *testing.T) {
	for victim := range 3 {
		t.Run(fmt.Sprintf("rank %d", victim), func(t *testing.T) {
			f := launch(t, 3, order{})
			f.tell(t, order{Do: "calls", Op: fabric.AllGather, Bytes: 4096})
			f.hear(t, "begun")
			stopped := time.Now()
			f[victim].signal(syscall.SIGSTOP)
			// It wakes whether or not a verdict has come, and so proves that one came before.
			time.AfterFunc(asleep, func() { f[victim].signal(syscall.SIGCONT) })
			events := f.but(victim).hear(t, "error")
			sameCause(t, fabric.ErrPeerFailed, victim, events)
			for _, e := range events {
				assert.Less(t, time.Duration(e.At-stopped.UnixNano()), asleep)
			}
			e := f[victim].hear(t, "error")
			assert.Contains(t, []int{victim, -1}, e.Peer, "it accuses a rank that was well: %+v", e)
			t.Logf("the stopped rank says: %s", e.Description)
			f.stop()
		})
	}
}

func TestARankThatStopsWhileIdleHasLonger(t *testing.T) {
	for _, victim := range []int{0, 1} {
		t.Run(fmt.Sprintf("rank %d", victim), func(t *testing.T) {
			f := launch(t, 3, order{})
			f.tell(t, order{Do: "idle"})
			f.hear(t, "begun")
			stopped := time.Now()
			three := time.After(3 * time.Second)
			f[victim].signal(syscall.SIGSTOP)
			others := f.but(victim)
			others[0].silent(t, three)
			events := others.hear(t, "error")
			sameCause(t, fabric.ErrPeerFailed, victim, events)
			for _, e := range events {
				after := time.Duration(e.At - stopped.UnixNano())
				assert.Greater(t, after, 3*time.Second)
				assert.Less(t, after, 6*time.Second)
			}
			f.stop()
		})
	}
}

func TestAShortStopHarmsNobody(t *testing.T) {
	f := launch(t, 3, order{})
	f.tell(t, order{Do: "idle"})
	f.hear(t, "begun")
	f[1].signal(syscall.SIGSTOP)
	<-time.After(2 * time.Second)
	f[1].signal(syscall.SIGCONT)
	f[0].silent(t, time.After(time.Second))
	f[2].silent(t, time.After(time.Millisecond))
	f.stop()
}

func TestSpinnersOnEveryCoreBringNoVerdict(t *testing.T) {
	long := time.Minute
	if testing.Short() || raceDetector {
		long = 5 * time.Second
	}
	busy, idle := launch(t, 2, order{}), launch(t, 2, order{})
	spinners := make(fleet, runtime.NumCPU())
	for i := range spinners {
		spinners[i] = start(t, i)
		spinners[i].tell(t, order{Do: "spin"})
	}
	spinners.hear(t, "begun")
	busy.tell(t, order{Do: "calls", Op: fabric.AllReduce, Bytes: 64})
	busy.hear(t, "begun")
	idle.tell(t, order{Do: "idle"})
	idle.hear(t, "begun")
	end := time.After(long)
	busy[0].silent(t, end)
	for _, r := range append(append(fleet{busy[1]}, idle...), spinners...) {
		r.silent(t, time.After(time.Millisecond))
	}
	busy.stop()
	idle.stop()
	spinners.stop()
	require.NotEmpty(t, spinners)
}
