package bootstrap

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/rail"
)

// twoCables are hosts a and b with a base network, 10.0.0.0/24 on eth0, and two cables with a subnet each.
func twoCables(t *testing.T) *hosts {
	h := newHosts(t, "a", "b")
	for i, name := range []string{"eth0", "eth1", "eth2"} {
		h.cable("a", name, "b", name)
		for k, host := range []string{"a", "b"} {
			h.ip(host, "addr add 10.0."+string(rune('0'+i))+"."+string(rune('1'+k))+"/24 dev "+name)
		}
	}
	return h
}

func apart(t *testing.T, world int) []Config { return withMaster(configs(t, world), "10.0.0.1:2900") }

// open makes a data connection of a pair on a rail, rank 0 on host a and rank 1 on b.
func (h *hosts) open(ctx context.Context, s []*Session, l fabric.Lane) (dialled, accepted *net.TCPConn, err error) {
	errs := make([]error, 2)
	each(2, func(i int) {
		if i == 0 {
			h.on("a", func() { accepted, errs[0] = s[0].Accept(ctx, 1, l) })
			return
		}
		h.on("b", func() { dialled, errs[1] = s[1].Dial(ctx, 0, l) })
	})
	for _, c := range []*net.TCPConn{dialled, accepted} {
		if c != nil {
			h.t.Cleanup(func() { c.Close() })
		}
	}
	return dialled, accepted, errors.Join(errs[1], errs[0])
}

func railTexts(s *Session, peer int) []string {
	var texts []string
	for _, r := range s.Rails(peer) {
		texts = append(texts, r.String())
	}
	return texts
}

func TestRailsBetweenTwoHostsAreFoundAndDialled(t *testing.T) {
	h := twoCables(t)
	s := h.join(apart(t, 2), "a", "b")
	assert.Equal(t, []string{"eth0 10.0.0.1-10.0.0.2", "eth1 10.0.1.1-10.0.1.2", "eth2 10.0.2.1-10.0.2.2"}, railTexts(s[0], 1))
	assert.Equal(t, []string{"eth0 10.0.0.2-10.0.0.1", "eth1 10.0.1.2-10.0.1.1", "eth2 10.0.2.2-10.0.2.1"}, railTexts(s[1], 0))
	for rail, want := range []string{"10.0.0.1:2900", "10.0.1.1:2900", "10.0.2.1:2900"} {
		dialled, accepted, err := h.open(testContext(t), s, fabric.Lane{Channel: "host", Rail: rail})
		require.NoError(t, err)
		assert.Equal(t, want, dialled.RemoteAddr().String())
		assert.Equal(t, dialled.LocalAddr(), accepted.RemoteAddr())
		assert.Equal(t, s[1].Rails(0)[rail].Local, addrOf(dialled.LocalAddr()))
	}
}

func brief(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(testContext(t), d)
	t.Cleanup(cancel)
	return ctx
}

func TestADeadCableIsNamed(t *testing.T) {
	h := twoCables(t)
	s := h.join(apart(t, 2), "a", "b")
	h.ip("a", "link set eth2 down")
	require.Eventually(t, func() (seen bool) {
		h.on("b", func() { seen = strings.Contains(rail.Look("eth2"), "no link") })
		return seen
	}, patience, 10*ms)
	_, _, err := h.open(brief(t, 500*ms), s, fabric.Lane{Channel: "host", Rail: 2})
	require.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorContains(t, err, "no data connection to rank 0 on rail 2 (eth2 10.0.2.2-10.0.2.1) in")
	assert.ErrorContains(t, err, "; here eth2 has no link: its cable is out or dead, or its far end is switched off")
	assert.ErrorContains(t, err, "no data connection from rank 1 on rail 2 (eth2 10.0.2.1-10.0.2.2) in")
	assert.ErrorContains(t, err, "; here eth2 is switched off")
	assert.NoError(t, s[0].Cause())
}
