package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestDataConnectionsMeetInAnyOrder(t *testing.T) {
	ctx := testContext(t)
	const world = 4
	s := group(t, configs(t, world))
	type end struct {
		c   *net.TCPConn
		err error
	}
	open := func(r, p int, channel string, lane int) end {
		if p < r {
			c, err := s[r].Dial(ctx, p, fabric.Lane{Channel: channel, Index: lane})
			return end{c, err}
		}
		c, err := s[r].Accept(ctx, p, fabric.Lane{Channel: channel, Index: lane})
		return end{c, err}
	}
	each(world*world*4, func(i int) {
		r, p, channel, lane := i/16, i/4%4, []string{"host", "device"}[i%2], i/2%2
		if r == p {
			return
		}
		e := open(r, p, channel, lane)
		if !assert.NoError(t, e.err) {
			return
		}
		defer e.c.Close()
		say := func(from, to int) string { return fmt.Sprintf("%d to %d on %-8s %d", from, to, channel, lane) }
		_, err := e.c.Write([]byte(say(r, p)))
		assert.NoError(t, err)
		got := make([]byte, len(say(p, r)))
		_, err = readFull(e.c, got)
		assert.NoError(t, err)
		assert.Equal(t, say(p, r), string(got))
	})
}

func readFull(c net.Conn, b []byte) (int, error) { return len(b), readRecord(c, b) }

func TestBadLanesAreRefusedByName(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	for text, call := range map[string]func() (*net.TCPConn, error){
		"peer is 2: rank 1 accepts from higher": func() (*net.TCPConn, error) { return s[1].Dial(ctx, 2, fabric.Lane{Channel: "host"}) },
		"peer is 0: rank 1 accepts from higher": func() (*net.TCPConn, error) { return s[1].Accept(ctx, 0, fabric.Lane{Channel: "host"}) },
		"peer is 1; another rank":               func() (*net.TCPConn, error) { return s[1].Dial(ctx, 1, fabric.Lane{Channel: "host"}) },
		"peer is 3; another rank":               func() (*net.TCPConn, error) { return s[1].Accept(ctx, 3, fabric.Lane{Channel: "host"}) },
		`channel is ""`:                         func() (*net.TCPConn, error) { return s[1].Dial(ctx, 0, fabric.Lane{Channel: ""}) },
		"1 to 16 bytes":                         func() (*net.TCPConn, error) { return s[1].Dial(ctx, 0, fabric.Lane{Channel: "seventeen bytes.."}) },
		"lane is -1":                            func() (*net.TCPConn, error) { return s[1].Dial(ctx, 0, fabric.Lane{Channel: "host", Index: -1}) },
	} {
		_, err := call()
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, text)
	}
}

func TestDialAndAcceptNameWhomTheyWaitedFor(t *testing.T) {
	s := group(t, configs(t, 2))
	brief, cancel := context.WithTimeout(testContext(t), 50*ms)
	defer cancel()
	_, err := s[0].Accept(brief, 1, fabric.Lane{Channel: "host"})
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, []any{"accept", 0, 1}, []any{op.Op, op.Rank, op.Peer})
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	s[0].listener.close()
	brief, cancel = context.WithTimeout(testContext(t), 50*ms)
	defer cancel()
	_, err = s[1].Dial(brief, 0, fabric.Lane{Channel: "host"})
	require.ErrorAs(t, err, &op)
	assert.Equal(t, []any{"dial", 1, 0}, []any{op.Op, op.Rank, op.Peer})
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorContains(t, err, "connection refused")
}

func TestAStaleSessionCannotDial(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	h := dataHello()
	h.rank, h.peer, h.group, h.session = 1, 0, s[1].group, [16]byte{1, 2, 3}
	_, err := s[1].dialData(ctx, net.Dialer{}, s[1].dataAddresses(0)[0], h)
	assert.ErrorIs(t, err, fabric.ErrUnauthorized)
	h.session = s[1].ID()
	c, err := s[1].dialData(ctx, net.Dialer{}, s[1].dataAddresses(0)[0], h)
	require.NoError(t, err)
	c.Close()
	assert.NoError(t, s[0].Cause())
}

func TestADialersRetryReplacesWhatItGaveUp(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	first, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host"})
	require.NoError(t, err)
	first.Close()
	second, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host"})
	require.NoError(t, err)
	defer second.Close()
	c, err := s[0].Accept(ctx, 1, fabric.Lane{Channel: "host"})
	require.NoError(t, err)
	defer c.Close()
	_, err = second.Write([]byte("x"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	assert.NoError(t, err)
}

func TestAConnectionThatItsDialerGaveUpIsNotHandedOver(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	first, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s[0].parkedCount() == 1 }, patience, ms)
	first.Close()
	brief, cancel := context.WithTimeout(ctx, 50*ms)
	defer cancel()
	_, err = s[0].Accept(brief, 1, fabric.Lane{Channel: "host"})
	assert.ErrorIs(t, err, fabric.ErrTimeout)
}

func (s *Session) parkedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parked)
}

// hungUp says whether the other end has closed c.
func hungUp(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestParkedConnectionsAreBounded(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	var last *net.TCPConn
	for lane := range maxParked + 1 {
		require.Eventually(t, func() bool { return s[0].parkedCount() == lane }, patience, ms)
		c, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host", Index: lane})
		require.NoError(t, err)
		defer c.Close()
		last = c
	}
	assert.True(t, hungUp(last))
	assert.Equal(t, maxParked, s[0].parkedCount())
	assert.NoError(t, s[0].Cause())
}

// A lane that was dialled anew before its forerunner was asked for leaves nothing of that one behind.
func TestALaterGenerationTakesTheParkedPlace(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	var dialled []*net.TCPConn
	for _, generation := range []int{1, 3, 2} {
		c, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host", Generation: generation})
		require.NoError(t, err)
		defer c.Close()
		dialled = append(dialled, c)
		require.Eventually(t, func() bool { return s[0].parkedCount() == 1 }, patience, ms)
	}
	assert.True(t, hungUp(dialled[0]), "overtaken")
	assert.True(t, hungUp(dialled[2]), "late")
	c, err := s[0].Accept(ctx, 1, fabric.Lane{Channel: "host", Generation: 3})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestALowerRankIsNotAccepted(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	h := dataHello()
	h.rank, h.peer, h.group, h.session = 0, 1, s[0].group, s[0].ID()
	c, err := s[0].dialData(ctx, net.Dialer{}, s[0].dataAddresses(1)[0], h)
	require.NoError(t, err)
	defer c.Close()
	assert.True(t, hungUp(c))
	assert.Zero(t, s[1].parkedCount())
}

func TestALinkLocalAddressGetsThisHostsZone(t *testing.T) {
	s := newSession((&Config{Rank: 1, World: 2}).withDefaults())
	defer s.end()
	s.places = []place{{}, {}}
	for _, a := range addrPorts("[fe80::1]:2000", "10.0.0.1:2000", "10.0.0.1:2000", "10.0.0.9:0") {
		s.places[0].listen = append(s.places[0].listen, address{at: a})
	}
	s.reached, s.zone = netip.MustParseAddrPort("[fe80::1%usb0]:2000"), "usb0"
	assert.Equal(t, addrPorts("[fe80::1%usb0]:2000", "10.0.0.1:2000"), s.dataAddresses(0))
}
