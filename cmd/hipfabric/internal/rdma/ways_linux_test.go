package rdma

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func TestEachRailCarriesMessagesBothWays(t *testing.T) {
	l := newLab(t, verbstest.Switch(2, 2))
	r := l.meet(nil)
	require.NotNil(t, r.Meeting)
	m := r.Meeting
	require.Empty(t, m.CutShort)
	require.NotNil(t, m.Far)
	assert.Equal(t, "host1", m.Far.Name)
	require.Len(t, m.Rails, 2)
	for i, rail := range m.Rails {
		assert.Equal(t, []string{r.Host.Devices[i].Name, m.Far.Devices[i].Name}, []string{rail.Near.Device, rail.Far.Device})
		assert.Empty(t, rail.Failed)
		assert.Equal(t, 4096, rail.MTU)
		require.Len(t, rail.Trips, 2)
		for j, bytes := range []int{smallBytes, largeBytes} {
			trips := rail.Trips[j]
			assert.Equal(t, []int{bytes, 0}, []int{trips.Bytes, trips.Wrong})
			assert.Positive(t, trips.Samples)
			assert.True(t, 0 < trips.MinUs && trips.MinUs <= trips.P50Us && trips.P50Us <= trips.P99Us && trips.P99Us <= trips.MaxUs, "%+v", trips)
		}
	}
	assert.Empty(t, codes(r))
	l.idle()
}

// wayCase is what is planted in two healthy hosts, and the finding that it brings.
type wayCase struct {
	name     string
	code     string
	severity doctor.Severity
	says     string
	mends    string
	top      verbstest.Topology
	with     func(*lab)
}

func wayCases() []wayCase {
	far := func(change func(*planted)) func(*lab) { return func(l *lab) { change(l.hosts[1]) } }
	one := verbstest.Switch(2, 1)
	return []wayCase{
		{"a cut way", "rail-failed", doctor.Error, "mem0 (10.77.0.1) here and mem0 (10.77.0.2) there: this host: message 1 of 200", "ping -c 3 -I ethmem0 10.77.0.2", one, func(l *lab) { l.fabric.Cut(0, 1) }},
		{"a dead rail", "rail-failed", doctor.Error, "mem1 (10.77.1.1) here", "rdma statistic show link mem1/1", verbstest.DeadRail(2, 2, 1), func(*lab) {}},
		{"a firewall before rxe", "rail-failed", doctor.Error, "UDP to port 4791", "nft list ruleset", one, func(l *lab) { l.hosts[1].software(); l.fabric.Cut(0, 1) }},
		{"a switch without jumbo frames", "large-lost", doctor.Error, "small messages pass and packets of 4096 bytes do not", "ping -M do -c 3 -s 4132 10.77.0.2", one, func(l *lab) {
			l.sooner(func() { l.hosts[0].verbs.HCA(0).WireMTU(1024) })
		}},
		{"no queue pair there", "rail-failed", doctor.Error, "the peer: ", "on the host that says so", one, far(func(p *planted) { p.verbs.Refuse("ibv_create_qp", 3, 22) })},
		{"no memory there", "rail-failed", doctor.Error, "may not lock so much", "ulimit -l unlimited", one, far(func(p *planted) { p.verbs.Refuse("ibv_reg_mr", 3, 12) })},
		{"wrong bytes", "wrong-bytes", doctor.Error, "messages between mem0", "ethtool -S ethmem0", one, far(func(p *planted) {
			p.verbs.HCA(0).Tamper(func(imm, n uint32) (uint32, uint32) { return imm ^ 1, n })
		})},
		{"no common subnet", "no-rail", doctor.Error, "here mem0 10.77.0.1/24; there mem0 10.77.1.2/24", "ip addr add", verbstest.Topology{Hosts: 2, HCAs: 1, Nets: [][]verbstest.Port{{{Host: 0}}, {{Host: 1}}}, Switched: true}, func(*lab) {}},
		{"another MTU", "unequal-mtu", doctor.Warning, "RDMA MTU 4096 on mem0 here, 1024 on mem0 there", "ip link set dev ethmem0 mtu 9000      (the peer)", one, far(func(p *planted) { require.NoError(p.t, p.verbs.HCA(0).MTU(1024)) })},
		{"no RDMA there", "no-device", doctor.Error, "the kernel has no RDMA device", "lspci", one, far((*planted).withoutRDMA)},
		{"no library there", "no-library", doctor.Error, "cannot open shared object", "ibverbs-providers", one, far(func(p *planted) { p.sys.Load = missingLibrary })},
		{"counters that grow", "counted-now", doctor.Warning, "out_of_sequence +3", "ethtool -S ethmem0", one, func(l *lab) {
			l.sooner(func() { l.hosts[0].write(port1+"/hw_counters/out_of_sequence", "3") })
		}},
		{"counters that grow there", "counted-now", doctor.Warning, "local_ack_timeout_err +9", "rdma statistic", one, func(l *lab) {
			l.sooner(func() { l.hosts[1].write(port1+"/hw_counters/local_ack_timeout_err", "9") })
		}},
	}
}

// sooner has change come after the hosts have looked at themselves and before queue pairs are tried.
func (l *lab) sooner(change func()) { l.then = change }

func (l *lab) told() func(string) {
	return func(stage string) {
		if strings.HasPrefix(stage, "queue pairs") && l.then != nil {
			l.then()
			l.then = nil
		}
	}
}

func TestEachFactOfTheWayIsFound(t *testing.T) {
	for _, c := range wayCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, c.top)
			c.with(l)
			r := l.meet(l.told())
			f := find(t, r, c.code, c.says)
			assert.Equal(t, c.severity, f.Severity)
			assert.Contains(t, strings.Join(f.Mend, "\n"), c.mends)
			assert.Empty(t, r.Meeting.CutShort)
			for i := range l.hosts {
				l.verbsIdle(i)
			}
		})
	}
}

// TestGuessedWaysThatAreNoneAreNoFinding: two cables, crossed, whose ends have link-local addresses alone.
func TestGuessedWaysThatAreNoneAreNoFinding(t *testing.T) {
	l := newLab(t, verbstest.Crossed())
	for _, h := range l.hosts {
		h.verbs.HCA(0).LinkLocalOnly()
		h.verbs.HCA(1).LinkLocalOnly()
	}
	r := l.meet(nil)
	require.Len(t, r.Meeting.Rails, 4)
	for _, rail := range r.Meeting.Rails {
		assert.True(t, rail.Guess)
		assert.Equal(t, rail.Near.Device == rail.Far.Device, rail.Failed != "", "%s: %s", rail, rail.Failed)
	}
	assert.NotContains(t, codes(r), "rail-failed")
	assert.Contains(t, codes(r), "link-local-only of this host")
	assert.Contains(t, codes(r), "link-local-only of the peer")
}

// TestOneSubnetForTwoCablesIsAWarningOfEachWayThatIsNone: the addresses say that each port reaches each.
func TestOneSubnetForTwoCablesIsAWarningOfEachWayThatIsNone(t *testing.T) {
	l := newLab(t, verbstest.Switch(2, 2))
	for i, h := range l.hosts {
		for j := range 2 {
			address := fmt.Sprintf("10.77.0.%d", 1+i+10*j)
			hca := h.verbs.HCA(j)
			require.NoError(t, hca.GIDs(verbs.GIDEntry{Index: 3, Type: verbs.GIDRoCEv2, GID: netip.MustParseAddr(address).As16(), NetDev: hca.NetDev()}))
			h.interfaces[j].Addresses = []string{address + "/24"}
		}
	}
	r := l.meet(nil)
	require.Len(t, r.Meeting.Rails, 4)
	failed := 0
	for _, f := range r.Findings {
		if f.Code == "rail-failed" {
			failed++
			assert.Equal(t, doctor.Warning, f.Severity, f.Seen)
		}
	}
	assert.Equal(t, 2, failed)
	find(t, r, "shared-subnet", "")
}

func TestOnlyTheDevicesThatWereAskedForAreTried(t *testing.T) {
	l := newLab(t, verbstest.Switch(2, 2))
	l.hosts[0].sys.Only = []string{"mem1"}
	r := l.meet(nil)
	require.Len(t, r.Host.Devices, 1)
	assert.Equal(t, []string{"mem0"}, r.Host.Others)
	require.Len(t, r.Meeting.Rails, 1)
	assert.Equal(t, "mem1", r.Meeting.Rails[0].Near.Device)
	assert.Empty(t, codes(r))
}

func TestWithoutRDMAOnEitherHostTheyMeetAllTheSame(t *testing.T) {
	for _, both := range []bool{false, true} {
		l := newLab(t, verbstest.Switch(2, 1))
		l.hosts[0].withoutRDMA()
		if both {
			l.hosts[1].withoutRDMA()
		}
		r := l.meet(nil)
		require.NotNil(t, r.Meeting.Far)
		assert.Equal(t, []string{"127.0.0.1", "127.0.0.2", "host1"}, []string{r.Meeting.Address, r.Meeting.FarAddress, r.Meeting.Far.Name})
		assert.Empty(t, r.Meeting.CutShort)
		assert.Empty(t, r.Meeting.Rails)
		assert.Contains(t, codes(r), "no-device of this host")
		assert.Equal(t, both, strings.Contains(strings.Join(codes(r), " "), "no-device of the peer"))
		require.Len(t, r.Reach, 1)
		assert.True(t, r.Reach[0].Answers)
	}
}

func TestAPeerThatIsNotMetIsTold(t *testing.T) {
	l := newLab(t, verbstest.Switch(2, 1))
	key := []byte(strings.Repeat("k", 32))
	for code, change := range map[string]func(*Question){
		NotMet:       func(q *Question) { q.Ends.Peer = "127.0.0.2:1" },
		Unauthorized: func(q *Question) { q.Ends.Secret = key },
		Busy: func(q *Question) {
			s, err := join(t.Context(), q.Ends, nearRank, time.Minute)
			require.NoError(t, err)
			t.Cleanup(s.close)
		},
	} {
		r := l.meet(nil, change)
		f := find(t, r, code, "")
		assert.Equal(t, []any{doctor.Error, ThePeer}, []any{f.Severity, f.Host})
		assert.NotEmpty(t, f.Mend)
		assert.Nil(t, r.Meeting.Far)
		assert.Equal(t, code, r.Meeting.Missed)
	}
	assert.Equal(t, Mismatch, missed(fabric.ErrMismatch))
	assert.Empty(t, missed(errors.New("x")))
}

func TestTheTimeoutBoundsAllOfIt(t *testing.T) {
	l := newLab(t, verbstest.Switch(2, 1))
	l.fabric.Cut(0, 1)
	began := time.Now()
	r := l.meet(nil, func(q *Question) { q.Timeout = 1500 * time.Millisecond })
	assert.Less(t, time.Since(began), time.Minute)
	find(t, r, "cut-short", "all of it took more than 1.5s")
}

func TestWhatAPeerMayOrderIsBounded(t *testing.T) {
	for want, o := range map[string]order{
		"65537 bytes":    {What: orderPing, Bytes: largeBytes + 1},
		"-1 bytes":       {What: orderPing, Bytes: -1},
		"10001 messages": {What: orderPing, Count: maxTrips + 1},
		"-1 messages":    {What: orderPing, Count: -1},
		"not say which":  {What: orderOpen},
	} {
		assert.ErrorContains(t, o.check(), want)
	}
	f := &far{sys: newLab(t, verbstest.Switch(1, 1)).hosts[0].sys}
	require.ErrorContains(t, f.pong(order{Bytes: 1, Count: 1}, &answer{}), "no queue pair")
	bad := order{What: orderOpen, End: &RailEnd{Device: "mem0", Port: 1, Index: 3}, Door: &Door{QPN: 1 << 30, GID: "x"}}
	for _, change := range []func(){func() {}, func() { bad.Door.GID = "::ffff:10.77.0.9" }, func() { bad.Door.QPN = 3; bad.MTU = 77 }, func() { bad.End.Index = 9 }, func() { bad.End.Device = "mem7" }} {
		change()
		require.Error(t, f.connect(bad, &answer{}))
		f.shut()
	}
}

// TestAHostWithThousandsOfGIDsFitsAMessage keeps what a host tells within a message's bound.
func TestAHostWithThousandsOfGIDsFitsAMessage(t *testing.T) {
	h := &Host{}
	for d := range 8 {
		p := Port{Number: 1, Counters: map[string]int64{}}
		for i := range maxSlots {
			p.GIDs = append(p.GIDs, GID{Index: i, Type: "RoCE v2", GID: "fe80:0000:0000:0000:0000:0000:0000:0001", Address: "fe80::1", NetDev: "enp193s0f1np1"})
		}
		for i := range maxCounters {
			p.Counters["a_rather_long_name_of_a_counter_"+strings.Repeat("x", i%8)+string(rune('a'+i%26))] = int64(i % 2)
		}
		h.Devices = append(h.Devices, Device{Name: string(rune('a' + d)), Ports: []Port{p}})
	}
	text, err := json.Marshal(answer{Host: h.told()})
	require.NoError(t, err)
	assert.Less(t, len(text), 200<<10)
	assert.Len(t, h.Devices[0].Ports[0].GIDs, maxSlots, "what is told is another")
}

func TestAFailureIsOfAKind(t *testing.T) {
	for want, err := range map[string]error{CauseWay: &verbs.CompletionError{Status: verbs.StatusRetryExceeded}, CauseMemlock: &verbs.MemlockError{Err: errors.New("x")}, CauseOther: errors.New("x")} {
		assert.Equal(t, want, cause(err))
	}
	assert.Empty(t, cause(nil))
}
