//go:build linux

package netns

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// TestSoak breaks the cables between two hosts in ways that a seed draws, for SOAK_TIME (a few seconds without), while
// checked calls run. One rail is always left, but now and then: then both ranks name each other, and meet again.
func TestSoak(t *testing.T) {
	seed, long := uint64(1), 6*time.Second
	if text := os.Getenv("SOAK_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "SOAK_SEED is a whole number")
		seed = n
	}
	if text := os.Getenv("SOAK_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		require.NoError(t, err, "SOAK_TIME is a duration such as 2m")
		long = d
	}
	t.Logf("seed %d for %v", seed, long)
	k := &soak{t: t, source: rand.New(rand.NewPCG(seed, 0)), counts: map[string]int{}}
	k.site = layout{hosts: 2, nets: []Net{{Number: 1, V4: true}, {Number: 2, V4: true, MTU: 9000}, {Number: 3, V6: true}}}.build(t)
	k.workers = launch(t, k.site.hosts, 2)
	k.open()
	for end := time.Now().Add(long); time.Now().Before(end); {
		k.step()
	}
	k.calls.stop()
	t.Logf("RESULT: seed %d: %v, %d rounds of checked calls", seed, k.counts, k.rounds+k.calls.calls(0))
}

type soak struct {
	t       *testing.T
	source  *rand.Rand
	site    *site
	workers fleet
	calls   *running
	rounds  int64 // of groups that have ended
	counts  map[string]int
}

// open joins the ranks and starts the calls; what was cut before is whole.
func (k *soak) open() {
	k.t.Helper()
	c := hipfabric.Config{Lanes: 3 + k.source.IntN(4), Verify: k.source.IntN(2) == 0}
	ranks, err := k.workers.open(c, k.site.reach)
	require.NoError(k.t, err)
	k.calls = run(k.t, ranks, k.source.Uint64(), 1<<20)
}

// whole goes on until every rail carries both ways on both ranks: a rail that was just plugged in is none that is left.
func (r *running) whole() {
	r.t.Helper()
	for rank := range r.ranks {
		before := r.rails(rank)
		late := time.Now().Add(patience)
		for !carried(before, r.rails(rank)) {
			require.True(r.t, time.Now().Before(late), "rank %d: not every rail carries again in %v: before %+v, now %+v\n%s", rank, patience, before, r.rails(rank), r.logs())
			r.advance(1)
		}
	}
}

func carried(before, now []fabric.RailStats) bool {
	for i, r := range now {
		if r.Lanes == 0 || r.SentBytes == before[i].SentBytes || r.ReceivedBytes == before[i].ReceivedBytes {
			return false
		}
	}
	return true
}

// pause is up to most, so that the next thing happens at any point of a call.
func (k *soak) pause(most time.Duration) { <-time.After(time.Duration(k.source.Int64N(int64(most)))) }

// step does one thing to the cables or to a rank, and requires what follows from it.
func (k *soak) step() {
	k.t.Helper()
	rail := k.source.IntN(3) // the base too: the control connections run over every rail
	side := k.source.IntN(2)
	p, far := k.site.ports[rail][side], k.site.ports[rail][1-side]
	kinds := []string{"pull", "pull", "mute", "mute", "flap", "both", "stop", "all"}
	kind := kinds[k.source.IntN(len(kinds))]
	k.counts[kind]++
	what := fmt.Sprintf("%s of rail %d at rank %d", kind, rail, side)
	defer func() {
		if k.t.Failed() {
			k.t.Logf("failed in step %v: %s", k.counts, what)
		}
	}()
	switch kind {
	case "pull":
		p.Pull()
		k.pause(2 * time.Second)
		k.calls.advance(3)
		p.Plug()
	case "mute":
		p.Mute(far)
		k.pause(3 * time.Second)
		k.calls.advance(3)
		p.Unmute(far)
	case "flap":
		for range 1 + k.source.IntN(5) {
			p.Pull()
			k.pause(100 * time.Millisecond)
			p.Plug()
			k.pause(300 * time.Millisecond)
		}
	case "both": // one after the other, or nearly at once
		other := k.site.ports[(rail+1)%3][side]
		p.Pull()
		k.pause(300 * time.Millisecond)
		other.Pull()
		k.calls.advance(3)
		p.Plug()
		k.pause(300 * time.Millisecond)
		other.Plug()
	case "stop": // shorter than a verdict
		w := k.workers[side]
		w.signal(syscall.SIGSTOP)
		<-time.After(300 * time.Millisecond)
		w.signal(syscall.SIGCONT)
	default:
		k.all()
	}
	k.calls.advance(3)
	k.calls.whole()
}

// all pulls every cable at once, holds both ranks to their verdicts, mends all and opens anew.
func (k *soak) all() {
	k.t.Helper()
	began := time.Now()
	for _, net := range k.site.ports {
		net[0].Pull()
	}
	_ = k.calls.failed(began, 0, 1)
	_ = k.calls.failed(began, 1, 0)
	k.rounds += k.calls.calls(0)
	for _, s := range k.calls.ranks {
		_ = s.Close()
	}
	for _, net := range k.site.ports {
		net[0].Plug()
		settle(net...)
	}
	k.open()
}
