package bootstrap

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// kill ends a rank as SIGKILL does: its sockets close, nothing is said.
func kill(s *Session) {
	s.post(func() {
		for _, k := range s.loop.links {
			k.close()
		}
		s.loop.leaving, s.loop.quit = true, true
	})
	<-s.over
}

// freeze stops a rank's control thread, as SIGSTOP does, until the test or thaw ends it.
func freeze(t *testing.T, s *Session) (thaw func()) {
	stopped, goOn := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	thaw = func() {
		if once.CompareAndSwap(false, true) {
			close(goOn)
		}
	}
	t.Cleanup(thaw)
	require.True(t, s.post(func() { close(stopped); <-goOn }))
	<-stopped
	return thaw
}

// causes waits for the cause of each.
func causes(t *testing.T, s ...*Session) []error {
	t.Helper()
	errs := make([]error, len(s))
	for i := range s {
		select {
		case <-s[i].settled:
			errs[i] = s[i].Cause()
		case <-time.After(patience):
			require.Fail(t, "no cause", "rank %d", s[i].Rank())
		}
	}
	return errs
}

func theCause(t *testing.T, want fabric.Cause, s ...*Session) {
	t.Helper()
	for i, err := range causes(t, s...) {
		var c *fabric.Cause
		require.ErrorAs(t, err, &c)
		got := *c
		got.Err = nil
		assert.Equal(t, want, got, "rank %d", s[i].Rank())
	}
}

// waitsFor is a Watch of a rank whose call waits for others.
func waitsFor(ranks ...int) func() fabric.Progress {
	p := fabric.Progress{Op: fabric.AllGather, Class: fabric.Group, Seq: 5, Peer: -1}
	for _, r := range ranks {
		p.Waiting |= 1 << r
	}
	return func() fabric.Progress { return p }
}

func quick(all []Config) []Config {
	for r := range all {
		all[r].Heartbeat, all[r].VerdictBusy, all[r].VerdictIdle = 20*ms, 300*ms, 1500*ms
	}
	return all
}

func peerFailed(peer, from int, text string) fabric.Cause {
	return fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: peer, From: from, Text: text}
}

const died = "its process ended: the control connection closed without a goodbye"
