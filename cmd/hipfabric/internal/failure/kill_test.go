//go:build unix

package failure

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// kills is how many ranks are killed in all; verdictLimit is what their survivors' p99 must stay below.
const verdictLimit = 500 * time.Millisecond

func kills() int {
	if raceDetector || testing.Short() {
		return 12
	}
	return 102
}

// states are what the ranks do when one is killed.
func states() map[string]func(testing.TB, fleet) {
	return map[string]func(testing.TB, fleet){
		"during calls": func(t testing.TB, f fleet) {
			f.tell(t, order{Do: "calls", Op: fabric.AllGather, Bytes: 4096})
			f.hear(t, "begun")
		},
		"between calls": func(t testing.TB, f fleet) {
			f.tell(t, order{Do: "once", Op: fabric.Barrier})
			f.hear(t, "begun")
			f.hear(t, "done")
			f.tell(t, order{Do: "idle"})
			f.hear(t, "begun")
		},
		"while parked": func(t testing.TB, f fleet) {
			f.tell(t, order{Do: "park"})
			f.hear(t, "begun")
		},
	}
}

func TestSurvivorsOfAKillAgreeAndKnowAtOnce(t *testing.T) {
	var late []int64
	for _, world := range []int{2, 4} {
		for name, begin := range states() {
			t.Run(fmt.Sprintf("%s, %d ranks", name, world), func(t *testing.T) {
				for i := range kills() / 6 {
					late = append(late, killOne(t, world, i%world, begin)...)
				}
			})
		}
	}
	slices.Sort(late)
	p99 := time.Duration(measure.Percentile(late, 0.99))
	t.Logf("%d kills: a survivor knows after p50 %v, p99 %v, at most %v", kills(), time.Duration(measure.Percentile(late, 0.5)), p99,
		time.Duration(late[len(late)-1]))
	assert.LessOrEqual(t, p99, verdictLimit)
}

// killOne gives how long each survivor took to know.
func killOne(t *testing.T, world, victim int, begin func(testing.TB, fleet)) []int64 {
	f := launch(t, world, order{})
	defer f.stop()
	begin(t, f)
	killed := time.Now().UnixNano()
	f[victim].signal(syscall.SIGKILL)
	events := f.but(victim).hear(t, "error")
	sameCause(t, fabric.ErrPeerFailed, victim, events)
	var late []int64
	for _, e := range events {
		late = append(late, e.At-killed)
	}
	return late
}

func TestARankThatLeavesEarlyIsNamed(t *testing.T) {
	for _, leaver := range []int{0, 2} {
		f := launch(t, 3, order{})
		others := f.but(leaver)
		others.tell(t, order{Do: "once", Op: fabric.AllGather, Bytes: 10})
		others.hear(t, "begun")
		f[leaver].tell(t, order{Do: "close"})
		f[leaver].hear(t, "closed")
		sameCause(t, fabric.ErrPeerFailed, leaver, others.hear(t, "error"))
		f.stop()
	}
}

func TestARankMayLeaveAnIdleGroup(t *testing.T) {
	f := launch(t, 3, order{})
	f.tell(t, order{Do: "once", Op: fabric.Barrier})
	f.hear(t, "begun")
	f.hear(t, "done")
	f[2].tell(t, order{Do: "close"})
	f[2].hear(t, "closed")
	pair := f.but(2)
	for _, r := range pair {
		r.tell(t, order{Do: "once", Op: []fabric.Op{fabric.Send, fabric.Recv}[r.number], Peer: 1 - r.number, Bytes: 100})
	}
	pair.hear(t, "begun")
	pair.hear(t, "done")
	pair.close(t)
	require.Len(t, pair, 2)
}
