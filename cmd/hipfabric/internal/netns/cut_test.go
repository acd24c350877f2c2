//go:build linux

package netns

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

const (
	most = 4 << 20 // bytes of the largest call of a flow
	// verdictLimit is far above the second of silence that the heartbeat takes, for the machine may be busy.
	verdictLimit = 20 * time.Second
)

// group opens a group of all hosts.
func (s *site) group(t testing.TB, c hipfabric.Config) []*subject {
	t.Helper()
	subjects, err := launch(t, s.hosts, len(s.hosts)).open(c, s.reach)
	require.NoError(t, err)
	return subjects
}

// failed requires that a rank has ended within the verdict's limit because of peer.
func (r *running) failed(began time.Time, rank, peer int) *fabric.Cause {
	r.t.Helper()
	err := r.wait(rank)
	require.ErrorIs(r.t, err, fabric.ErrPeerFailed, "rank %d", rank)
	var op *fabric.OpError
	require.True(r.t, errors.As(err, &op))
	assert.Equal(r.t, peer, op.Peer, "rank %d: %v", rank, err)
	assert.Less(r.t, time.Since(began), verdictLimit, "rank %d", rank)
	r.t.Logf("rank %d after %v: %v", rank, time.Since(began).Round(time.Millisecond), err)
	return fabric.CauseOf(err)
}

func TestAHostWhoseOnlyCableIsPulledIsNamedByAll(t *testing.T) {
	s := layout{hosts: 4, nets: []Net{{V4: true}}}.build(t)
	r := run(t, s.group(t, hipfabric.Config{}), 1, most)
	began := time.Now()
	s.ports[0][2].Pull()
	causes := map[string]bool{}
	for _, rank := range []int{0, 1, 3} {
		causes[r.failed(began, rank, 2).Text] = true
	}
	assert.Len(t, causes, 1, "one cause for all who can talk")
	_ = r.failed(began, 2, 0) // alone, it knows only that the judge is gone
}

func TestWhoIsCutOneWayIsNamed(t *testing.T) {
	for mute := range 2 {
		t.Run([]string{"rank 0 is not heard", "rank 1 is not heard"}[mute], func(t *testing.T) {
			s := layout{hosts: 2, nets: []Net{{V4: true}}}.build(t)
			r := run(t, s.group(t, hipfabric.Config{}), 2, most)
			began := time.Now()
			s.ports[0][mute].Mute(s.ports[0][1-mute])
			_ = r.failed(began, 0, 1)
			_ = r.failed(began, 1, 0)
		})
	}
}

func TestAllCablesPulledAtOnceEndTheGroup(t *testing.T) {
	s := layout{hosts: 2, nets: []Net{{Number: 1, V4: true}, {Number: 2, V4: true}}}.build(t)
	r := run(t, s.group(t, hipfabric.Config{}), 3, most)
	began := time.Now()
	for _, net := range s.ports {
		net[0].Pull()
	}
	for rank := range 2 {
		cause := r.failed(began, rank, 1-rank)
		for _, net := range s.ports {
			assert.Contains(t, cause.Text, fmt.Sprintf("%s %v-%v", net[rank].Device, net[rank].V4, net[1-rank].V4), "rank %d", rank)
		}
	}
}

func TestAShortOutageIsRiddenOut(t *testing.T) {
	s := layout{hosts: 2, nets: []Net{{V4: true}}}.build(t)
	r := run(t, s.group(t, hipfabric.Config{VerdictBusy: time.Minute}), 4, most)
	a, b := s.ports[0][0], s.ports[0][1]
	for name, outage := range map[string][2]func(){
		"a pulled cable": {a.Pull, a.Plug},
		"a mute port":    {func() { b.Mute(a) }, func() { b.Unmute(a) }},
	} {
		outage[0]()
		<-time.After(500 * time.Millisecond)
		outage[1]()
		r.advance(3)
		t.Logf("%s is over", name)
	}
	r.stop()
}

func TestAStoppedRankIsNoCut(t *testing.T) {
	s := layout{hosts: 2, nets: []Net{{Number: 1, V4: true}, {Number: 2, V4: true}}}.build(t)
	subjects := s.group(t, hipfabric.Config{VerdictBusy: time.Minute})
	r := run(t, subjects, 5, most)
	for _, victim := range subjects {
		victim.worker.signal(syscall.SIGSTOP)
		<-time.After(3 * time.Second)
		victim.worker.signal(syscall.SIGCONT)
		r.advance(3)
	}
	r.stop()
	for _, s := range subjects {
		assert.NotContains(t, s.worker.stderr.String(), "level=WARN", "rank %d took a stop for something else", s.rank)
	}
}
