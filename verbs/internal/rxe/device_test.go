//go:build rxevm && linux

package rxe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
)

func TestDevicesAndPortsAreDescribed(t *testing.T) {
	lib, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	all, err := lib.Devices()
	require.NoError(t, err)
	require.Len(t, all, 2)
	for i, d := range all {
		assert.Equal(t, fmt.Sprintf("rxe%d", i), d.Name())
		assert.Equal(t, fmt.Sprintf("/dev/infiniband/uverbs%d", i), d.Node())
		assert.NotZero(t, d.GUID())
		assert.Equal(t, i, d.Index())
		assert.True(t, d.IsChannelAdapter())
	}
	_, err = lib.Device("rxe7")
	require.ErrorContains(t, err, `no RDMA device "rxe7": there are rxe0, rxe1`)

	c := open(t, "rxe0")
	attr := c.Attr()
	assert.Equal(t, 1, attr.Ports)
	assert.Equal(t, 32767, attr.MaxCQE)
	assert.Equal(t, 32, attr.MaxSGE)
	assert.Equal(t, 128, attr.MaxReadsIn)
	assert.Equal(t, all[0].GUID(), attr.NodeGUID)
	port, err := c.Port(1)
	require.NoError(t, err)
	assert.Equal(t, verbs.PortActive, port.State)
	assert.Equal(t, verbs.LinkEthernet, port.LinkLayer)
	assert.Equal(t, [2]int{4096, 4096}, [2]int{port.MaxMTU, port.ActiveMTU})
	assert.Equal(t, 1024, port.GIDs)
	assert.NotZero(t, port.Rate())
	for _, bad := range []int{0, 2, -1} {
		_, err = c.Port(bad)
		require.ErrorContains(t, err, "it has 1, numbered from 1")
	}
	key, err := c.PKey(1, 0)
	require.NoError(t, err)
	assert.Equal(t, uint16(0xffff), key)
}

func TestTheGIDTableHasTypesAndInterfacesAndNoEmptySlots(t *testing.T) {
	gids, err := open(t, "rxe0").GIDs()
	require.NoError(t, err)
	require.Len(t, gids, 2, "of 1024 slots")
	for _, g := range gids {
		assert.Equal(t, verbs.GIDRoCEv2, g.Type)
		assert.Equal(t, "eth_a", g.NetDev)
		assert.Equal(t, 1, g.Port)
		types, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/%d", g.Index))
		require.NoError(t, err)
		assert.Equal(t, "RoCE v2", strings.TrimSpace(string(types)))
		raw, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/rxe0/ports/1/gids/%d", g.Index))
		require.NoError(t, err)
		assert.Equal(t, strings.ReplaceAll(strings.TrimSpace(string(raw)), ":", ""), fmt.Sprintf("%x", g.GID[:]))
	}
	assert.True(t, gids[0].GID.Addr().IsLinkLocalUnicast())
	assert.Equal(t, "10.0.12.1", gids[1].GID.Addr().String())
}

func TestAConnectionIsAsItWasAskedFor(t *testing.T) {
	k := verbs.Connection{
		MTU: 1024, Timeout: 10 * time.Millisecond, Retries: 3, RNRRetries: -1, RNRTimer: time.Millisecond, ReadsOut: 4, ReadsIn: 5,
		TrafficClass: 104,
	}
	a, b := pair(t, verbs.QPConfig{}, k)
	state, got, err := a.qp.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.StateRTS, state)
	assert.Equal(t, b.endpoint().GID, got.Remote.GID)
	assert.Equal(t, b.qp.QPN(), got.Remote.QPN)
	assert.Equal(t, verbs.AccessRemoteWrite|verbs.AccessRemoteRead, got.Access)
	assert.Equal(t, []any{1024, 16777216 * time.Nanosecond, 3, 0, 1280 * time.Microsecond, 104, a.gid.Index, 1},
		[]any{got.MTU, got.Timeout, got.Retries, got.RNRRetries, got.RNRTimer, got.TrafficClass, got.GIDIndex, got.Port})
	assert.Equal(t, []int{4, 8}, []int{got.ReadsOut, got.ReadsIn}, "rxe rounds the second up")
}

func TestOrderOfDataIsAnsweredOrRefusedByName(t *testing.T) {
	a := newEnd(t, "rxe0", verbs.QPConfig{})
	in, err := a.qp.DataInOrder(verbs.OpWrite)
	if a.c.Device().Library().Has(verbs.FeatureQueryDataInOrder) {
		require.NoError(t, err)
		assert.False(t, in, "rxe promises nothing")
	} else {
		require.ErrorAs(t, err, new(*verbs.UnsupportedError))
	}
}

func TestACompletionWakesWhoWaits(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	for round := range uint64(20) {
		require.NoError(t, b.cq.Arm(false))
		b.receive(t, verbs.RecvWR{ID: round})
		woken := make(chan error, 1)
		go func() {
			cq, err := b.channel.Wait(within(t, bound))
			if err == nil && cq != b.cq {
				err = fmt.Errorf("woken for another CQ")
			}
			woken <- err
		}()
		a.send(t, verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSignaled})
		require.NoError(t, <-woken)
		assert.Equal(t, round, b.poll(t, 1)[0].ID)
		a.poll(t, 1)
	}
	_, there, err := b.channel.Event()
	require.NoError(t, err)
	assert.False(t, there, "one event an arming")
}

func TestOnlySolicitedCompletionsWakeWhoAskedForThose(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	require.NoError(t, b.cq.Arm(true))
	b.receive(t, verbs.RecvWR{ID: 1}, verbs.RecvWR{ID: 2})
	a.send(t, verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSignaled})
	a.poll(t, 1)
	b.poll(t, 1)
	_, there, err := b.channel.Event()
	require.NoError(t, err)
	require.False(t, there)
	a.send(t, verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSignaled | verbs.SendSolicited})
	_, err = b.channel.Wait(within(t, bound))
	require.NoError(t, err)
}

func TestAWaitEndsByItsContextAndByClose(t *testing.T) {
	c := open(t, "rxe0")
	channel, err := c.NewChannel()
	require.NoError(t, err)
	cq, err := c.NewCQ(verbs.CQConfig{Channel: channel})
	require.NoError(t, err)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err = channel.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = c.NextEvent(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	require.Error(t, channel.Close(), "a CQ is of it")
	require.NoError(t, cq.Close())
	ended := make(chan error, 2)
	go func() { _, err := channel.Wait(t.Context()); ended <- err }()
	go func() { _, err := c.NextEvent(t.Context()); ended <- err }()
	require.NoError(t, channel.Close())
	require.ErrorIs(t, <-ended, os.ErrClosed)
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-ended, os.ErrClosed)
	for range 2 {
		require.NoError(t, channel.Close())
		require.NoError(t, c.Close())
	}
	_, err = channel.Wait(t.Context())
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = c.NewPD()
	require.ErrorIs(t, err, os.ErrClosed)
}

func TestALinkThatGoesDownIsAnEventAndAFailure(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{Timeout: time.Millisecond, Retries: 1})
	link := func(to string) {
		out, err := exec.Command("rxe-link", "eth_a", to).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	defer link("up")
	link("down")
	await := func(kind verbs.EventType) {
		for {
			event, err := a.c.NextEvent(within(t, bound))
			require.NoError(t, err, kind)
			if event.Type == kind {
				assert.Equal(t, 1, event.Port)
				return
			}
		}
	}
	await(verbs.EventPortError)
	port, err := a.c.Port(1)
	require.NoError(t, err)
	assert.Equal(t, verbs.PortDown, port.State)
	a.send(t, write(a, b, b.mr.RKey(), 0))
	assert.NotEqual(t, verbs.StatusSuccess, a.poll(t, 1)[0].Status)
	require.Error(t, a.qp.Err())

	link("up")
	await(verbs.EventPortActive)
	require.NoError(t, a.qp.Reset())
	require.NoError(t, b.qp.Reset())
	a.gid, b.gid = mapped(t, a.c), mapped(t, b.c) // indexes may have changed
	connect(t, a, b, verbs.Connection{})
	a.send(t, write(a, b, b.mr.RKey(), 0))
	require.NoError(t, a.cq.Err(a.poll(t, 1)[0]))
}

func TestCloseOfAContextClosesWhatIsItsOwn(t *testing.T) {
	for range 50 {
		c := open(t, "rxe0")
		channel, err := c.NewChannel()
		require.NoError(t, err)
		pd, err := c.NewPD()
		require.NoError(t, err)
		cq, err := c.NewCQ(verbs.CQConfig{Channel: channel})
		require.NoError(t, err)
		qp, err := pd.NewQP(verbs.QPConfig{SendCQ: cq})
		require.NoError(t, err)
		m, err := verbs.NewMemory(4096)
		require.NoError(t, err)
		mr, err := pd.Register(m, verbs.AccessLocalWrite)
		require.NoError(t, err)
		require.ErrorContains(t, m.Close(), "registered 1 times")
		require.Error(t, pd.Close(), "something of it is left")
		require.Error(t, cq.Close(), "a queue pair completes there")
		require.NoError(t, c.Close())
		for _, err := range []error{qp.Close(), mr.Close(), pd.Close(), cq.Close(), channel.Close(), m.Close()} {
			require.NoError(t, err, "a second Close does nothing")
		}
		_, err = qp.PostSend(verbs.SendWR{})
		require.ErrorIs(t, err, os.ErrClosed)
		_, err = cq.Poll(make([]verbs.WC, 1))
		require.ErrorIs(t, err, os.ErrClosed)
	}
	left, err := exec.Command("rdma", "resource", "show").CombinedOutput()
	require.NoError(t, err)
	t.Logf("%s", left)
	for line := range strings.Lines(string(left)) {
		assert.Contains(t, line, " mr 0 ", line)
		assert.Contains(t, line, " pd 1 ", line)
	}
}
