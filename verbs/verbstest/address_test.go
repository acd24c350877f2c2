package verbstest_test

import (
	"context"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// reaches says whether a write crosses from one HCA to another.
func reaches(t *testing.T, f *verbstest.Fabric, from, to verbstest.Port) error {
	t.Helper()
	a, b := end(t, open(t, f, from.Host, from.HCA), verbs.QPConfig{}), end(t, open(t, f, to.Host, to.HCA), verbs.QPConfig{})
	if err := conform.Connect(a, b, impatient()); err != nil {
		return err
	}
	post(t, a, a.Write(b, 0, 0, 8))
	wc, err := a.Poll(1)
	require.NoError(t, err)
	return a.CQ.Err(wc[0])
}

func TestTopologies(t *testing.T) {
	for name, of := range map[string]verbstest.Topology{
		"switch": verbstest.Switch(3, 2), "ring of 3": verbstest.Ring(3), "ring of 4": verbstest.Ring(4), "crossed": verbstest.Crossed(),
		"dead rail": verbstest.DeadRail(2, 2, 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := fabric(t, 1, of)
			net := map[verbstest.Port]int{}
			for n, ports := range of.Nets {
				for _, p := range ports {
					net[p] = n
				}
			}
			for a, n := range net {
				for b, m := range net {
					if a == b {
						continue
					}
					err := reaches(t, f, a, b)
					switch {
					case n != m:
						assert.ErrorIs(t, err, syscall.ENETUNREACH, "%v to %v", a, b)
					case len(of.Dead) > 0 && n == of.Dead[0]:
						var failed *verbs.CompletionError
						if assert.ErrorAs(t, err, &failed, "%v to %v", a, b) {
							assert.Equal(t, verbs.StatusRetryExceeded, failed.Status)
						}
					default:
						assert.NoError(t, err, "%v to %v", a, b)
					}
				}
			}
		})
	}
	assert.Equal(t, [][]verbstest.Port{{{Host: 0, HCA: 0}, {Host: 1, HCA: 1}}, {{Host: 1, HCA: 0}, {Host: 2, HCA: 1}}, {{Host: 2, HCA: 0}, {Host: 0, HCA: 1}}}, verbstest.Ring(3).Nets)
}

func TestTopologiesThatCannotBe(t *testing.T) {
	for says, of := range map[string]verbstest.Topology{
		"Topology.Hosts is 0: 1 to 32":              verbstest.Switch(0, 1),
		"Topology.HCAs is 8: 1 to 7":                verbstest.Switch(2, 8),
		"Topology.Dead names net 2: there are 2":    verbstest.DeadRail(2, 2, 2),
		"HCA 0 of host 1: there are 1 hosts of 1":   {Hosts: 1, HCAs: 1, Nets: [][]verbstest.Port{{{Host: 1}}}},
		"is in Topology.Nets[0] and [1]: it has on": {Hosts: 1, HCAs: 1, Nets: [][]verbstest.Port{{{}}, {{}}}},
	} {
		_, err := verbstest.New(1, of)
		assert.ErrorContains(t, err, says)
	}
}

func TestGIDTables(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	h := f.Host(0).HCA(0)
	a, other := open(t, f, 0, 0), open(t, f, 1, 0)
	table := func(c *verbs.Context) []verbs.GIDEntry {
		gids, err := c.GIDs()
		require.NoError(t, err)
		return gids
	}
	before := table(a)
	require.Len(t, before, 4)
	assert.Equal(t, netip.MustParseAddr("10.77.0.1"), before[3].GID.Addr())
	assert.Equal(t, netip.MustParsePrefix("10.77.0.1/24"), h.Addr())
	assert.Equal(t, [2]verbs.GIDType{verbs.GIDRoCEv1, verbs.GIDRoCEv2}, [2]verbs.GIDType{before[2].Type, before[3].Type})
	assert.NotEqual(t, before[3].Index, table(other)[3].Index, "no index is right everywhere")
	assert.Greater(t, table(other)[2].Index, 2, "empty slots")

	h.Drift()
	assert.Equal(t, before[3].Index+1, table(a)[3].Index)
	event, there, err := a.Event()
	require.NoError(t, err)
	assert.True(t, there)
	assert.Equal(t, verbs.EventGIDChange, event.Type)

	h.RoCEv1Only()
	assert.Len(t, table(a), 2)
	h.LinkLocalOnly()
	assert.Len(t, table(a), 1)
	assert.False(t, h.Addr().IsValid())
	require.ErrorContains(t, h.GIDs(verbs.GIDEntry{Index: 16}), "index 16: 0 to 15, each once")
	require.NoError(t, h.GIDs(before...))
	assert.Equal(t, before, table(a))
	h.NoGIDs()
	assert.Empty(t, table(a))
}

func TestAnInterfaceHasTheAddressesOfItsGIDs(t *testing.T) {
	f := fabric(t, 1, verbstest.Ring(3))
	h := f.Host(1)
	texts := func(netdev string) (all []string) {
		list, err := h.Addresses(netdev)
		require.NoError(t, err)
		for _, p := range list {
			all = append(all, p.String())
		}
		return all
	}
	assert.Equal(t, []string{"fe80::5e:ff:fe00:100/64", "10.77.1.2/24"}, texts("ethmem0"), "each once, of four GIDs")
	assert.Equal(t, []string{"fe80::5e:ff:fe00:101/64", "10.77.0.2/24"}, texts("ethmem1"))
	far, err := f.Host(2).Addresses("ethmem1")
	require.NoError(t, err)
	near, err := h.Addresses("ethmem0")
	require.NoError(t, err)
	assert.Equal(t, near[1].Masked(), far[1].Masked(), "the two ends of a cable")
	h.HCA(0).LinkLocalOnly()
	assert.Equal(t, []string{"fe80::5e:ff:fe00:100/64"}, texts("ethmem0"))
	h.HCA(0).NoGIDs()
	assert.Empty(t, texts("ethmem0"))
	require.NoError(t, h.HCA(0).GIDs(verbs.GIDEntry{GID: verbs.GID{0: 0x20, 15: 1}, Type: verbs.GIDRoCEv2, NetDev: "bond0"}))
	assert.Equal(t, []string{"2000::1/64"}, texts("bond0"))
	_, err = h.Addresses("eth9")
	require.EqualError(t, err, `verbstest: host 1 has no network interface "eth9"`)
}

// Both ends of a connection must be of one type: packets of the other are not heard.
func TestATypeOfGIDThatThePeerHasNotIsLost(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := end(t, open(t, f, 0, 0), verbs.QPConfig{}), end(t, open(t, f, 1, 0), verbs.QPConfig{})
	f.Host(1).HCA(0).RoCEv1Only()
	b.GID.Index--
	require.NoError(t, conform.Connect(a, b, impatient()))
	post(t, a, a.Write(b, 0, 0, 8))
	statuses(t, a, verbs.StatusRetryExceeded)
	b.GID.Index++
	require.NoError(t, b.QP.Reset())
	require.ErrorIs(t, b.QP.Connect(verbs.Connection{GIDIndex: b.GID.Index, Remote: verbs.Endpoint{GID: a.GID.GID}}), syscall.EINVAL, "an empty slot")
}

func TestMTUs(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	require.ErrorContains(t, f.Host(0).HCA(0).MTU(1500), "256, 512, 1024, 2048 or 4096")
	require.NoError(t, f.Host(0).HCA(0).MTU(1024))
	a, b := end(t, open(t, f, 0, 0), verbs.QPConfig{}), end(t, open(t, f, 1, 0), verbs.QPConfig{})
	require.ErrorIs(t, conform.Connect(a, b, verbs.Connection{MTU: 2048}), syscall.EINVAL)
	require.NoError(t, a.QP.Reset())
	require.NoError(t, conform.Connect(a, b, verbs.Connection{})) // each its port's
	post(t, a, a.Write(b, 0, 0, 1024), a.Write(b, 0, 0, 1025))
	statuses(t, a, verbs.StatusSuccess, verbs.StatusRemoteInvalid)
}

func TestAddressesThatNobodyHas(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a := end(t, open(t, f, 0, 0), verbs.QPConfig{})
	require.NoError(t, a.QP.Init(verbs.Connection{}))
	to := func(addr string) error {
		return a.QP.ReadyToReceive(verbs.Connection{GIDIndex: a.GID.Index, Remote: verbs.Endpoint{QPN: 2, GID: netip.MustParseAddr(addr).As16()}})
	}
	require.ErrorIs(t, to("10.77.0.9"), syscall.EHOSTUNREACH)
	require.ErrorIs(t, to("10.78.0.2"), syscall.ENETUNREACH)
	require.ErrorIs(t, to("fe80::1"), syscall.ENETUNREACH)
	f.Host(0).HCA(0).Link(false)
	require.ErrorIs(t, to("10.77.0.2"), syscall.ENETUNREACH)
}

func TestAChannelWakesWhoWaits(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{})
	ch, err := b.C.NewChannel()
	require.NoError(t, err)
	cq, err := b.C.NewCQ(verbs.CQConfig{Channel: ch})
	require.NoError(t, err)
	q, err := b.PD.NewQP(verbs.QPConfig{SendCQ: cq})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	b.QP, q = q, b.QP
	require.NoError(t, a.QP.Reset())
	require.NoError(t, conform.Connect(a, b, verbs.Connection{}))
	for range 3 {
		require.NoError(t, cq.Arm(true))
		_, err = b.QP.PostRecv(verbs.RecvWR{}, verbs.RecvWR{})
		require.NoError(t, err)
		post(t, a, verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSignaled})
		statuses(t, a, verbs.StatusSuccess)
		_, there, err := ch.Event()
		require.NoError(t, err)
		assert.False(t, there, "it was not solicited")
		time.AfterFunc(10*time.Millisecond, func() {
			_, _ = a.QP.PostSend(verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSolicited | verbs.SendSignaled})
		})
		woken, err := ch.Wait(within(t))
		require.NoError(t, err)
		assert.Same(t, cq, woken)
		n, err := cq.Poll(make([]verbs.WC, 4))
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		statuses(t, a, verbs.StatusSuccess)
	}
	_, err = b.QP.PostRecv(verbs.RecvWR{})
	require.NoError(t, err)
	post(t, a, verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSolicited | verbs.SendSignaled})
	statuses(t, a, verbs.StatusSuccess)
	_, there, err := ch.Event()
	require.NoError(t, err)
	assert.False(t, there, "it was not armed again")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ch.Wait(ended)
	require.ErrorIs(t, err, context.Canceled)
}
