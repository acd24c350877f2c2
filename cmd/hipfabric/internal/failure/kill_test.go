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

// verdictLimit is what the p99 of the survivors of all kills must stay below.
const verdictLimit = 500 * time.Millisecond

// kills is how many ranks are killed in each state of each world: over a hundred in all.
func kills() int {
	if raceDetector || testing.Short() {
		return 2
	}
	return 13
}

// state is what the ranks do when one, the victim, is killed.
type state func(t testing.TB, f fleet, victim int)

func states() map[string]state {
	return map[string]state{
		"during calls": func(t testing.TB, f fleet, _ int) {
			f.tell(t, order{Do: "calls", Op: fabric.AllGather, Bytes: 4096})
			f.hear(t, "begun")
		},
		"between calls": func(t testing.TB, f fleet, _ int) {
			f.tell(t, order{Do: "once", Op: fabric.Barrier})
			f.hear(t, "begun")
			f.hear(t, "done")
			f.tell(t, order{Do: "idle"})
			f.hear(t, "begun")
		},
		"while parked on Control": func(t testing.TB, f fleet, _ int) {
			f.tell(t, order{Do: "park"})
			f.hear(t, "begun")
		},
		"while parked in a call": func(t testing.TB, f fleet, victim int) {
			survivors := f.but(victim)
			survivors.tell(t, order{Do: "await", Op: fabric.AllGather, Bytes: 4096, Peer: victim})
			survivors.hear(t, "parked")
		},
	}
}

func TestSurvivorsOfAKillAgreeAndKnowAtOnce(t *testing.T) {
	var late []int64
	for _, world := range []int{2, 4} {
		for name, begin := range states() {
			t.Run(fmt.Sprintf("%s, %d ranks", name, world), func(t *testing.T) {
				for i := range kills() {
					late = append(late, killOne(t, world, i%world, begin)...)
				}
			})
		}
	}
	slices.Sort(late)
	p99 := time.Duration(measure.Percentile(late, 0.99))
	t.Logf("RESULT: %d kills: a survivor knows after p50 %v, p99 %v, at most %v", 2*len(states())*kills(), time.Duration(measure.Percentile(late, 0.5)),
		p99, time.Duration(late[len(late)-1]))
	assert.LessOrEqual(t, p99, verdictLimit)
}

// killOne gives how long each survivor took to know.
func killOne(t *testing.T, world, victim int, begin state) []int64 {
	f := launch(t, world, order{})
	defer f.stop()
	begin(t, f, victim)
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

// No connection of its own tells rank 0: the call waits for a rank that is well.
func TestAKillEndsACallThatWaitsForAnotherRank(t *testing.T) {
	f := launch(t, 3, order{})
	f[1].tell(t, order{Do: "idle"})
	f[1].hear(t, "begun")
	f[0].tell(t, order{Do: "await", Op: fabric.Recv, Bytes: 4096, Peer: 1})
	f[0].hear(t, "parked")
	f[2].signal(syscall.SIGKILL)
	sameCause(t, fabric.ErrPeerFailed, 2, f.but(2).hear(t, "error"))
	f.stop()
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
