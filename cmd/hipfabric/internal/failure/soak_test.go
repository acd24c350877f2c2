//go:build unix

package failure

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

const (
	soakTimeout = 2 * time.Second // of a call
	// soakDeadline is when every rank must have ended after a fault: its Timeout, the verdict, and what a busy machine adds.
	soakDeadline = soakTimeout + time.Second + 10*time.Second
)

// TestSoak breaks groups in ways that a seed draws, for SOAK_TIME (a few seconds without). Whatever happens, every rank ends before
// its deadline, all name one cause, no byte is wrong and nothing is left behind.
func TestSoak(t *testing.T) {
	seed, long := uint64(1), 4*time.Second
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
	s := &soak{t: t, source: rand.New(rand.NewPCG(seed, 0))}
	counts := map[string]int{}
	for end := time.Now().Add(long); time.Now().Before(end); {
		counts[s.round()]++
		if t.Failed() {
			t.Fatalf("failed with seed %d in round %d: %s", seed, s.rounds, s.what)
		}
	}
	s.ranks.stop()
	t.Logf("RESULT: seed %d: %d rounds, %v", seed, s.rounds, counts)
}

type soak struct {
	t      *testing.T
	source *rand.Rand
	ranks  fleet // that live; killed ones are replaced
	rounds int
	what   string // the round under way
}

// between draws a time.
func (s *soak) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.source.Int64N(int64(most-least)))
}

// round opens a group, breaks it, checks what is left and says what happened.
func (s *soak) round() string {
	s.rounds++
	world := 2 + s.source.IntN(3)
	for len(s.ranks) < 4 {
		s.ranks = append(s.ranks, start(s.t, len(s.ranks)))
	}
	group := s.ranks[:world]
	kinds := []string{"kill", "stop", "pause", "cut", "corrupt", "drop", "abort", "desync", "leave"}
	kind := kinds[s.source.IntN(len(kinds))]
	victim := s.source.IntN(world)
	if faulty(kind) {
		victim = 1 + s.source.IntN(world-1) // who dials has the faults
	}
	seed := s.source.Uint64()
	s.what = fmt.Sprintf("%s of rank %d of %d", kind, victim, world)

	group.openWith(s.t, order{Timeout: soakTimeout, Verify: true, Raw: true}, func(n int, o *order) {
		if n == victim && faulty(kind) {
			s.fault(kind, o)
		}
	})
	began := time.Now()
	for n, r := range group {
		o := order{Do: "stream", Seed: seed, Odd: -1}
		switch {
		case n == victim && kind == "desync":
			o.Odd = s.source.IntN(20)
		case n == victim && (kind == "abort" || kind == "leave"):
			o.After, o.Leave = s.between(time.Millisecond, 300*time.Millisecond), kind == "leave"
		}
		if n == (victim+1)%world && o.After == 0 { // so that a round ends in which nothing breaks
			o.After = 800 * time.Millisecond
			if kind == "stop" {
				o.After = 5 * time.Second
			}
		}
		r.tell(s.t, o)
	}
	group.hear(s.t, "begun")
	s.strike(kind, group[victim])
	ended := s.verdicts(kind, group, victim, began)
	s.clean(kind, group, victim)
	return kind + ": " + ended
}

func faulty(kind string) bool { return kind == "cut" || kind == "corrupt" || kind == "drop" }

// fault hits the connections that a rank dials at some byte, which may be one that is never moved.
func (s *soak) fault(kind string, o *order) {
	o.Kind = map[string]fabrictest.FaultKind{"cut": fabrictest.Cut, "corrupt": fabrictest.Corrupt, "drop": fabrictest.Drop}[kind]
	o.Inbound, o.Offset, o.Bytes = s.source.IntN(2) == 0, s.source.Int64N(64<<s.source.IntN(16)), s.source.IntN(100)
}

// strike does to the victim what comes from outside.
func (s *soak) strike(kind string, victim *rank) {
	if kind != "kill" && kind != "stop" && kind != "pause" {
		return
	}
	<-time.After(s.between(time.Millisecond, 200*time.Millisecond))
	switch kind {
	case "kill":
		victim.signal(syscall.SIGKILL)
	case "stop":
		victim.signal(syscall.SIGSTOP)
	case "pause":
		victim.signal(syscall.SIGSTOP)
		<-time.After(s.between(time.Millisecond, 300*time.Millisecond))
		victim.signal(syscall.SIGCONT)
	}
}

// verdicts hears how each rank ended, holds it to the invariants and says how the group did.
func (s *soak) verdicts(kind string, group fleet, victim int, began time.Time) (ended string) {
	others := group.but(victim)
	events := others.hear(s.t, "error")
	if kind == "stop" {
		group[victim].signal(syscall.SIGCONT)
	}
	for _, e := range events {
		assert.Equal(s.t, events[0].Fault.cause(), e.Fault.cause(), "two causes: %+v, %+v", events[0], e)
		assert.Contains(s.t, expected(kind), e.Kind, "%+v", e)
		assert.Equal(s.t, e.Text, e.Again, "the next call has another cause: %+v", e)
		assert.Less(s.t, time.Duration(e.At-began.UnixNano()), soakDeadline+5*time.Second, "past its deadline: %+v", e)
	}
	if kind == "kill" {
		group[victim].stop()
		return events[0].Kind
	}
	e := group[victim].hear(s.t, "error")
	switch kind {
	case "leave":
		assert.Equal(s.t, fabric.ErrClosed.Error(), e.Kind, "%+v", e)
	case "stop": // asleep, it may have missed what the others settled; it must not blame them
		assert.True(s.t, e.Peer == victim || e.Peer == -1 || e.cause() == events[0].cause(), "%+v, %+v", e, events[0])
	default:
		assert.Equal(s.t, events[0].Fault.cause(), e.Fault.cause(), "two causes: %+v, %+v", events[0], e)
	}
	assert.NotEqual(s.t, measure.ErrWrong.Error(), e.Kind, "%+v", e)
	return events[0].Kind
}

// cause is what all ranks must share of an error.
func (f Fault) cause() string { return fmt.Sprint(f.Kind, f.Peer, f.From, f.Text) }

// expected lists how a round of a kind may end; wrong data is in none.
func expected(kind string) []string {
	failed, aborted, desync, late := fabric.ErrPeerFailed.Error(), fabric.ErrAborted.Error(), fabric.ErrDesync.Error(), fabric.ErrTimeout.Error()
	switch kind {
	case "kill", "leave":
		return []string{failed}
	case "stop":
		return []string{failed}
	case "abort", "pause":
		return []string{aborted}
	case "desync":
		return []string{desync, aborted}
	case "cut":
		return []string{failed, aborted}
	case "drop":
		return []string{failed, desync, late, aborted}
	default: // corrupt
		return []string{failed, desync, late, aborted}
	}
}

// clean closes what is left of the group and compares what each process holds with what it held after its first one.
func (s *soak) clean(kind string, group fleet, victim int) {
	left := group
	if kind == "kill" {
		left = group.but(victim)
		s.ranks[victim] = start(s.t, victim)
	}
	left.tell(s.t, order{Do: "free"})
	for i, e := range left.hear(s.t, "closed") {
		assert.LessOrEqual(s.t, e.Fds, e.FdsBefore, "descriptors of rank %d", left[i].number)
		assert.LessOrEqual(s.t, e.Goroutines, e.Before, "goroutines of rank %d: %s", left[i].number, e.Description)
	}
}
