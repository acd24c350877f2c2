package roce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// portsOnly is a Driver that can be asked for ports alone.
type portsOnly struct {
	Driver
	ports func() ([]Port, error)
}

func (d portsOnly) String() string         { return "libtest.so" }
func (d portsOnly) Ports() ([]Port, error) { return d.ports() }

func having(ports ...Port) portsOnly {
	return portsOnly{ports: func() ([]Port, error) { return ports, nil }}
}

// portsOf asks a host's library.
func portsOf(t testing.TB, host *verbstest.Host) (ports []Port) {
	devices, err := host.Library().Devices()
	require.NoError(t, err)
	for _, d := range devices {
		c, err := d.Open()
		require.NoError(t, err)
		attr, err := c.Port(1)
		require.NoError(t, err)
		table, err := c.GIDs()
		require.NoError(t, err)
		p := Port{Device: d.Name(), Port: 1, Active: attr.State == verbs.PortActive, State: attr.State.String(), Ethernet: attr.LinkLayer == verbs.LinkEthernet, MTU: attr.ActiveMTU, Rate: attr.Rate()}
		for _, g := range table {
			p.GIDs = append(p.GIDs, GID{Index: g.Index, Version: int(g.Type), Addr: g.GID, NetDev: g.NetDev})
		}
		ports = append(ports, p)
		require.NoError(t, c.Close())
	}
	return ports
}

func wired(t testing.TB, topology verbstest.Topology) *verbstest.Fabric {
	f, err := verbstest.New(1, topology)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// quiet is a Config with defaults that logs nowhere.
func quiet() Config { return Config{Logger: slog.New(slog.DiscardHandler)}.withDefaults() }

func TestTheSurveyFindsWhatIsWired(t *testing.T) {
	for name, tc := range map[string]struct {
		topology verbstest.Topology
		want     []string
	}{
		"alone":               {verbstest.Switch(1, 1), nil},
		"switch":              {verbstest.Switch(3, 1), []string{"0-1: mem0-mem0", "0-2: mem0-mem0", "1-2: mem0-mem0"}},
		"switches":            {verbstest.Switch(2, 2), []string{"0-1: mem0-mem0", "0-1: mem1-mem1"}},
		"crossed":             {verbstest.Crossed(), []string{"0-1: mem0-mem1", "0-1: mem1-mem0"}},
		"dead rail, unseen":   {verbstest.DeadRail(2, 2, 1), []string{"0-1: mem0-mem0", "0-1: mem1-mem1"}},
		"ring of three":       {verbstest.Ring(3), []string{"0-1: mem0-mem1", "0-2: mem1-mem0", "1-2: mem0-mem1"}},
		"ring of four":        {verbstest.Ring(4), []string{"0-1: mem0-mem1", "0-2 via 1: mem0-mem1, mem0-mem1", "0-2 via 3: mem1-mem0, mem1-mem0", "0-3: mem1-mem0", "1-2: mem0-mem1", "1-3 via 0: mem1-mem0, mem1-mem0", "1-3 via 2: mem0-mem1, mem0-mem1", "2-3: mem0-mem1"}},
		"two on one's switch": {verbstest.Topology{Hosts: 2, HCAs: 2, Switched: true, Nets: [][]verbstest.Port{{{Host: 0, HCA: 0}, {Host: 0, HCA: 1}, {Host: 1, HCA: 0}, {Host: 1, HCA: 1}}}}, []string{"0-1: mem0-mem0", "0-1: mem1-mem1"}},
	} {
		f := wired(t, tc.topology)
		found := make([][]circuit, f.Hosts())
		meshes := newMeshes(f.Hosts())
		errs := onAll(f.Hosts(), func(r int) (err error) {
			found[r], err = survey(t.Context(), meshes[r], having(portsOf(t, f.Host(r))...), quiet())
			return err
		})
		require.NoError(t, errors.Join(errs...), name)
		for r := range found {
			assert.Equal(t, tc.want, shown(found[r]), "%s, rank %d", name, r)
			assert.Equal(t, found[0], found[r], "%s, rank %d", name, r)
		}
	}
}

func TestASurveyGoesByAddressesWhereverTheirGIDsAre(t *testing.T) {
	f := wired(t, verbstest.Crossed())
	f.Host(0).HCA(1).Drift()
	require.NoError(t, f.Host(1).HCA(0).MTU(1024))
	meshes, logs := newMeshes(2), [2]*lines{{}, {}}
	found := make([][]circuit, 2)
	errs := onAll(2, func(r int) (err error) {
		c := quiet()
		c.Logger = slog.New(slog.NewTextHandler(logs[r], &slog.HandlerOptions{Level: slog.LevelDebug}))
		found[r], err = survey(t.Context(), meshes[r], having(portsOf(t, f.Host(r))...), c)
		return err
	})
	require.NoError(t, errors.Join(errs...))
	assert.Equal(t, []string{"0-1: mem0-mem1", "0-1: mem1-mem0"}, shown(found[0]))
	assert.Equal(t, 1024, found[0][1].Links[0].MTU)
	assert.Equal(t, netip.MustParseAddr("10.77.1.1"), found[0][1].Links[0].End[0].Addr())
	for _, want := range []string{"level=INFO", "mem0:1 10.77.0.1/24 by GID 3, one of 4, RoCE v2, IPv4", "/24 is a guess", "rank 0 mem1:1 - rank 1 mem0:1, MTU 1024", "level=WARN", "the active MTUs differ, 4096 and 1024 bytes: 1024 is used"} {
		assert.Contains(t, logs[0].String(), want)
	}
	assert.NotContains(t, logs[1].String(), "level=WARN", "rank 0 says it for all")
	assert.Contains(t, logs[1].String(), "level=DEBUG")
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// saying is a mesh whose rank says something else in its n-th all-gather, from 0.
type saying struct {
	Mesh
	n   int
	say func([]byte) []byte
}

func (m *saying) AllGather(ctx context.Context, blob []byte) ([][]byte, error) {
	if m.n--; m.n == -1 {
		blob = m.say(blob)
	}
	return m.Mesh.AllGather(ctx, blob)
}

// trouble is something that one rank has.
type trouble struct {
	name, step string
	kind       error
	text       string // with %d for the rank
	ports      func([]Port) ([]Port, error)
	config     func(*Config)
	gather     int // as saying.n
	say        func([]byte) []byte
}

func troubles() []trouble {
	each := func(change func(*Port)) func([]Port) ([]Port, error) {
		return func(ports []Port) ([]Port, error) {
			for i := range ports {
				change(&ports[i])
			}
			return ports, nil
		}
	}
	move := func(p *Port) {
		for i := range p.GIDs {
			p.GIDs[i].Addr = netip.MustParseAddr("192.168.250.1").As16()
		}
	}
	return []trouble{
		{name: "no RDMA", step: stepDevices, kind: fabric.ErrUnsupported, text: "rank %d: unsupported: libtest.so: no such library", ports: func([]Port) ([]Port, error) { return nil, errors.New("no such library") }},
		{name: "no port", step: stepDevices, kind: fabric.ErrUnsupported, text: "rank %d: unsupported: there is no RDMA port", ports: func([]Port) ([]Port, error) { return nil, nil }},
		{name: "ports down", step: stepDevices, kind: fabric.ErrUnsupported, text: "rank %d: unsupported: no port is active Ethernet: mem0:1: down", ports: each(func(p *Port) { p.Active, p.State = false, "down" })},
		{name: "InfiniBand", step: stepDevices, kind: fabric.ErrUnsupported, text: "mem0:1 is InfiniBand", ports: each(func(p *Port) { p.Ethernet = false })},
		{name: "no GID", step: stepDevices, kind: fabric.ErrUnsupported, text: "rank %d: unsupported: no port has a usable GID: mem0:1", ports: each(func(p *Port) { p.GIDs = nil })},
		{name: "RoCE v1", step: stepDevices, kind: fabric.ErrUnsupported, text: "(RoCE v1)", ports: each(func(p *Port) { p.GIDs = p.GIDs[:1] })},
		{name: "unknown HCA", step: stepDevices, kind: fabric.ErrInvalid, text: `rank %d: invalid: HCAs[0] "men0": there is no such device; did you mean mem0?`, config: func(c *Config) { c.HCAs = []string{"men0"} }},
		{name: "bad setting", step: stepDevices, kind: fabric.ErrInvalid, text: `rank %d: invalid: HCAs[0] is ""`, config: func(c *Config) { c.HCAs = []string{""} }},
		{name: "wrong pin", step: stepDevices, kind: fabric.ErrInvalid, text: `rank %d: invalid: HCAs[0] "mem0:1:15": mem0:1 has no GID 15`, config: func(c *Config) { c.HCAs = []string{"mem0:1:15"} }},
		{name: "all excluded", step: stepDevices, kind: fabric.ErrInvalid, text: "rank %d: invalid: HCAs", config: func(c *Config) { c.HCAs = []string{"^mem"} }},
		{name: "other slots", step: stepAdverts, kind: fabric.ErrMismatch, text: "Slots: rank 0 has", config: func(c *Config) { c.Slots = 16 }},
		{name: "other channel", step: stepAdverts, kind: fabric.ErrMismatch, text: "Channel: rank 0 has", config: func(c *Config) { c.Channel = "else" }},
		{name: "garbage", step: stepAdverts, kind: fabric.ErrMismatch, text: "rank %d sent what is not an advert", say: func(b []byte) []byte { return b[:len(b)-1] }},
		{name: "nothing", step: stepAdverts, kind: fabric.ErrMismatch, text: "rank %d sent what is not an advert", say: func([]byte) []byte { return nil }},
		{name: "other build", step: stepAdverts, kind: fabric.ErrMismatch, text: "rank %d sent what is not an advert of version 1, but of 9", say: func(b []byte) []byte { return append([]byte{9}, b[1:]...) }},
		{name: "read otherwise", step: stepAdverts, kind: fabric.ErrMismatch, text: "draw different conclusions", gather: 1, say: func(b []byte) []byte { return append([]byte{^b[0]}, b[1:]...) }},
		{name: "subnets apart", step: stepRails, kind: fabric.ErrUnsupported, text: "192.168.250.1/24", ports: each(move)},
		{name: "joined otherwise", step: stepRails, kind: fabric.ErrMismatch, text: "draw different conclusions", gather: 2, say: func(b []byte) []byte { return append([]byte{^b[0]}, b[1:]...) }},
	}
}

func TestATroubleOnAnyRankEndsAllAlike(t *testing.T) {
	const world = 4
	f := wired(t, verbstest.Ring(world))
	var ports [world][]Port
	for r := range ports {
		ports[r] = portsOf(t, f.Host(r))
	}
	var matrix strings.Builder
	for _, x := range troubles() {
		fmt.Fprintf(&matrix, "\n%-16s %-13s", x.name, x.step)
		for bad := range world {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			meshes := newMeshes(world)
			errs := onAll(world, func(r int) error {
				d, c, m := having(clonePorts(ports[r])...), quiet(), meshes[r]
				if r == bad {
					if x.ports != nil {
						d.ports = func() ([]Port, error) { return x.ports(clonePorts(ports[r])) }
					}
					if x.config != nil {
						x.config(&c)
					}
					if x.say != nil {
						m = &saying{m, x.gather, x.say}
					}
				}
				found, err := survey(ctx, m, d, c)
				assert.Empty(t, found)
				return err
			})
			cancel()
			verdict := "alike"
			for r, err := range errs {
				where := fmt.Sprintf("%s on rank %d, as rank %d sees it", x.name, bad, r)
				if !assert.Error(t, err, where) || !assert.EqualError(t, err, errs[0].Error(), where) {
					verdict = "NOT ALIKE"
					continue
				}
				var v *voteError
				assert.ErrorAs(t, err, &v, where)
				assert.Equal(t, x.step, v.step, where)
				assert.ErrorIs(t, err, x.kind, where)
				text := x.text
				if strings.Contains(text, "%d") {
					text = fmt.Sprintf(text, bad)
				}
				assert.ErrorContains(t, err, text, where)
				assert.Len(t, v.no, 1, "%s: one rank says why", where)
			}
			fmt.Fprintf(&matrix, " rank %d: %-9s", bad, verdict)
		}
	}
	t.Logf("one rank has a trouble; how all end:%s", matrix.String())
}

func clonePorts(ports []Port) []Port {
	all := append([]Port{}, ports...)
	for i := range all {
		all[i].GIDs = append([]GID{}, all[i].GIDs...)
	}
	return all
}

func TestTroublesOfSeveralRanksAreAllNamed(t *testing.T) {
	meshes := newMeshes(3)
	errs := onAll(3, func(r int) error {
		d := having(withGIDs("a:1", fmt.Sprintf("1 v2 10.0.0.%d", 1+r)))
		if r > 0 {
			d = having()
		}
		_, err := survey(t.Context(), meshes[r], d, quiet())
		return err
	})
	for _, err := range errs {
		assert.ErrorContains(t, err, "no from rank 1: unsupported: there is no RDMA port; see hipfabric doctor rdma; rank 2: unsupported")
	}
}

func TestASurveyEndsByItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	meshes := newMeshes(2)
	done := make(chan error)
	go func() {
		_, err := survey(ctx, meshes[0], having(withGIDs("a:1", "1 v2 10.0.0.1")), quiet())
		done <- err
	}()
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
}

func TestAloneNothingIsAsked(t *testing.T) {
	found, err := survey(t.Context(), newMeshes(1)[0], portsOnly{ports: func() ([]Port, error) { t.Error("asked"); return nil, nil }}, quiet())
	assert.NoError(t, err)
	assert.Empty(t, found)
}

func TestWhatAllRanksSeeIsSaidOnce(t *testing.T) {
	ends := make([]string, 0, 3)
	for r := range 3 {
		ends = append(ends, fmt.Sprintf("1 v2 10.%d.0.1", r))
	}
	meshes := newMeshes(3)
	errs := onAll(3, func(r int) error {
		_, err := survey(t.Context(), meshes[r], having(withGIDs("a:1", ends[r])), quiet())
		return err
	})
	for _, err := range errs {
		require.ErrorIs(t, err, fabric.ErrUnsupported)
		assert.EqualError(t, err, "vote on RoCE rails: no from rank 0: unsupported: ranks 0 and 1 have no rail: rank 0 has a:1 10.0.0.1/24, rank 1 has a:1 10.1.0.1/24, of which no two are in one subnet; "+
			"only a ring of 4 relays, and these are 3 ranks: join them by a cable or switch, or correct the addresses; likewise 0 and 2, 1 and 2")
	}
}
