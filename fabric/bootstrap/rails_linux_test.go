package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/rail"
)

// cabled are hosts a and b, ethN of a with 10.0.N.1/24 and of b with 10.0.N.2/24. The cable of a's ethN leads to b's
// eth(far[N]).
func cabled(t *testing.T, far ...int) *hosts {
	h := newHosts(t, "a", "b")
	h.loosen("a")
	h.loosen("b")
	for near, far := range far {
		h.cable("a", fmt.Sprintf("eth%d", near), "b", fmt.Sprintf("eth%d", far))
	}
	for n := range far {
		h.ip("a", fmt.Sprintf("addr add 10.0.%d.1/24 dev eth%d", n, n))
		h.ip("b", fmt.Sprintf("addr add 10.0.%d.2/24 dev eth%d", n, n))
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

// deviceOf is the interface to which a socket is bound.
func deviceOf(t *testing.T, c *net.TCPConn) (name string) {
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		name, err = unix.GetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
	}))
	require.NoError(t, err)
	return name
}

func railTexts(s *Session, peer int) []string {
	var texts []string
	for _, r := range s.Rails(peer) {
		texts = append(texts, r.String())
	}
	return texts
}

func TestRailsBetweenTwoHostsAreFoundAndDialled(t *testing.T) {
	h := cabled(t, 0, 1, 2)
	s := h.join(apart(t, 2), "a", "b")
	assert.Equal(t, []string{"eth0 10.0.0.1-10.0.0.2", "eth1 10.0.1.1-10.0.1.2", "eth2 10.0.2.1-10.0.2.2"}, railTexts(s[0], 1))
	assert.Equal(t, []string{"eth0 10.0.0.2-10.0.0.1", "eth1 10.0.1.2-10.0.1.1", "eth2 10.0.2.2-10.0.2.1"}, railTexts(s[1], 0))
	assert.Equal(t, addrPorts("10.0.0.1:2900"), s[1].dataAddresses(0), "the first rail is dialled on no cable of another")
	for rail, want := range []string{"10.0.0.1:2900", "10.0.1.1:2900", "10.0.2.1:2900"} {
		dialled, accepted, err := h.open(testContext(t), s, fabric.Lane{Channel: "host", Rail: rail})
		require.NoError(t, err)
		assert.Equal(t, want, dialled.RemoteAddr().String())
		assert.Equal(t, dialled.LocalAddr(), accepted.RemoteAddr())
		assert.Equal(t, s[1].Rails(0)[rail].Local, addrOf(dialled.LocalAddr()))
		device := []string{"", "eth1", "eth2"}[rail]
		assert.Equal(t, []string{device, device}, []string{deviceOf(t, dialled), deviceOf(t, accepted)}, "each end is bound to its interface alone")
	}
}

func TestADeadCableIsNamed(t *testing.T) {
	h := cabled(t, 0, 1, 2)
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

func TestCrossedCablesAreNamed(t *testing.T) {
	h := cabled(t, 0, 2, 1)
	s := h.join(apart(t, 2), "a", "b")
	for rail, want := range []string{1: "the cable on eth1 here leads to eth2 (10.0.2.1) of rank 0, not to eth1: the cables are crossed",
		2: "the cable on eth2 here leads to eth1 (10.0.1.1) of rank 0, not to eth2: the cables are crossed"} {
		if rail == 0 {
			continue
		}
		_, _, err := h.open(brief(t, 500*ms), s, fabric.Lane{Channel: "host", Rail: rail})
		require.ErrorIs(t, err, fabric.ErrTimeout)
		assert.ErrorContains(t, err, fmt.Sprintf("no data connection to rank 0 on rail %d (eth%d ", rail, rail))
		assert.ErrorContains(t, err, want)
	}
	assert.Zero(t, s[0].parkedCount(), "a probe leaves nothing behind")
	assert.NoError(t, s[0].Cause())
}

func TestTwoCablesCrossedWithTheBaseAreNamed(t *testing.T) {
	h := cabled(t, 1, 0)
	s := h.join(apart(t, 2), "a", "b")
	_, _, err := h.open(brief(t, 500*ms), s, fabric.Lane{Channel: "host", Rail: 1})
	require.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorContains(t, err, "the cable on eth1 here leads to eth0 (10.0.0.1) of rank 0, not to eth1: the cables are crossed")
}

func TestARingOfCablesJoinsItsThreeRanks(t *testing.T) {
	h := newHosts(t, "a", "b", "c")
	for _, c := range [][4]string{{"a", "b", "10.0.0.1/24", "10.0.0.2/24"}, {"a", "c", "10.0.2.1/24", "10.0.2.3/24"}, {"b", "c", "10.0.3.2/24", "10.0.3.3/24"}} {
		h.cable(c[0], "to-"+c[1], c[1], "to-"+c[0])
		h.ip(c[0], "addr add "+c[2]+" dev to-"+c[1])
		h.ip(c[1], "addr add "+c[3]+" dev to-"+c[0])
	}
	all := apart(t, 3)
	for r := range all {
		all[r].Master = "node0:2900"
		all[r].lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.2.1")}, nil
		}
	}
	all[2].Master = "10.0.2.1:2900"
	s := h.join(all, "a", "b", "c")
	assert.Equal(t, []string{"to-c 10.0.3.2-10.0.3.3"}, railTexts(s[1], 2))
	assert.Equal(t, []string{"to-b 10.0.3.3-10.0.3.2"}, railTexts(s[2], 1))
	each(2, func(i int) {
		if i == 0 {
			h.on("b", func() { h.closeLater(s[1].Accept(testContext(t), 2, fabric.Lane{Channel: "host"})) })
			return
		}
		h.on("c", func() { h.closeLater(s[2].Dial(testContext(t), 1, fabric.Lane{Channel: "host"})) })
	})
}

func (h *hosts) closeLater(c *net.TCPConn, err error) {
	if assert.NoError(h.t, err) {
		h.t.Cleanup(func() { c.Close() })
	}
}

func TestACableWithIPv6AloneIsARail(t *testing.T) {
	h := newHosts(t, "a", "b")
	for i, name := range []string{"eth0", "eth1", "eth2"} {
		h.cable("a", name, "b", name)
		for k, host := range []string{"a", "b"} {
			h.ip(host, fmt.Sprintf("addr add fd00:%d::%d/64 dev %s nodad", i, k+1, name))
		}
	}
	h.ip("a", "addr add 10.0.1.1/24 dev eth1")
	h.ip("b", "addr add 10.0.1.2/24 dev eth1")
	all := withMaster(configs(t, 2), "[fd00:0::1]:2900")
	s := h.join(all, "a", "b")
	assert.Equal(t, []string{"eth0 fd00::2-fd00::1", "eth1 10.0.1.2-10.0.1.1", "eth2 fd00:2::2-fd00:2::1"}, railTexts(s[1], 0))
	for rail := range 3 {
		_, _, err := h.open(testContext(t), s, fabric.Lane{Channel: "host", Rail: rail})
		assert.NoError(t, err)
	}
}

func TestContainersHaveNoRails(t *testing.T) {
	h := cabled(t, 0, 1)
	for k, host := range []string{"a", "b"} {
		h.ip(host, "link add docker0 type bridge")
		h.ip(host, "link set docker0 up")
		h.ip(host, fmt.Sprintf("addr add 172.17.0.%d/16 dev docker0", k+1))
		h.ip(host, "link add lab type bridge")
		h.ip(host, "link set lab up")
		h.ip(host, fmt.Sprintf("addr add 172.19.0.%d/16 dev lab", k+1))
	}
	s := h.join(apart(t, 2), "a", "b")
	assert.Equal(t, []string{"eth0 10.0.0.1-10.0.0.2", "eth1 10.0.1.1-10.0.1.2"}, railTexts(s[0], 1))
	assert.Equal(t, []string{"10.0.0.1:2900", "10.0.1.1:2900"}, s[0].listener.addresses())
	closeAll(s)
	all := apart(t, 2)
	for r := range all {
		all[r].Rails = []string{"eth", "=lab"}
	}
	s = h.join(all, "a", "b")
	assert.Equal(t, []string{"eth0 10.0.0.1-10.0.0.2", "eth1 10.0.1.1-10.0.1.2", "lab 172.19.0.1-172.19.0.2"}, railTexts(s[0], 1))
}

func TestListenAndItsRails(t *testing.T) {
	h := cabled(t, 0, 1, 2)
	all := apart(t, 2)
	all[0].Listen = []string{"10.0.0.1:2900", "10.0.2.1:0"}
	h.ip("b", "addr add 10.0.2.9/24 dev eth2")
	all[1].Listen = []string{"10.0.0.2:0", "10.0.1.2:0", "10.0.2.9:0"}
	s := h.join(all, "a", "b")
	assert.Equal(t, []string{"eth0 10.0.0.2-10.0.0.1", "eth2 10.0.2.9-10.0.2.1"}, railTexts(s[1], 0))
	assert.Len(t, s[0].listener.addresses(), 2)
	_, accepted, err := h.open(testContext(t), s, fabric.Lane{Channel: "host", Rail: 1})
	require.NoError(t, err)
	assert.Equal(t, "10.0.2.9", addrOf(accepted.RemoteAddr()).String(), "not the interface's first address")
}

func TestATakenPortOfACableIsAnother(t *testing.T) {
	h := cabled(t, 0, 1)
	h.on("a", func() {
		l, err := net.Listen("tcp", "10.0.1.1:2900")
		if assert.NoError(t, err) {
			t.Cleanup(func() { l.Close() })
		}
	})
	s := h.join(apart(t, 2), "a", "b")
	require.Len(t, s[0].listener.addresses(), 2)
	assert.NotEqual(t, "10.0.1.1:2900", s[0].listener.addresses()[1])
	dialled, _, err := h.open(testContext(t), s, fabric.Lane{Channel: "host", Rail: 1})
	require.NoError(t, err)
	assert.Equal(t, s[0].listener.addresses()[1], dialled.RemoteAddr().String())
}

// Ranks of one host meet no cable; those of others do.
func TestRanksOfOneHostShareTheBaseAmongThemselves(t *testing.T) {
	h := cabled(t, 0, 1)
	s := h.join(apart(t, 3), "a", "a", "b")
	for pair, want := range map[[2]int][]string{
		{0, 1}: {"route 10.0.0.1-10.0.0.1"},
		{0, 2}: {"eth0 10.0.0.1-10.0.0.2", "eth1 10.0.1.1-10.0.1.2"},
		{1, 2}: {"eth0 10.0.0.1-10.0.0.2", "eth1 10.0.1.1-10.0.1.2"},
	} {
		assert.Equal(t, want, railTexts(s[pair[0]], pair[1]), "%v", pair)
	}
	assert.True(t, s[0].Rails(1)[0].SameHost)
	assert.False(t, s[0].Rails(2)[0].SameHost)
	each(2, func(i int) {
		if i == 0 {
			h.on("a", func() { h.closeLater(s[1].Accept(testContext(t), 2, fabric.Lane{Channel: "host", Rail: 1})) })
			return
		}
		h.on("b", func() { h.closeLater(s[2].Dial(testContext(t), 1, fabric.Lane{Channel: "host", Rail: 1})) })
	})
}
