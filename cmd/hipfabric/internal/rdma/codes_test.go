package rdma

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

var named = regexp.MustCompile(`(?:Code: |f\.Code(?:, f\.Seen)? = )"([a-z-]+)"`)

// inSource are the codes in the source.
func inSource(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("findings*.go")
	require.NoError(t, err)
	list := []string{Unauthorized, Mismatch, Busy, NotMet}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			list = append(list, m[1])
		}
	}
	return list
}

// TestEveryFindingHasALineInTheDocumentAndATest reads the codes from the source, so that none is added without.
func TestEveryFindingHasALineInTheDocumentAndATest(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/doctor.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(doc), "\n## RDMA\n")
	require.True(t, found)
	var tests strings.Builder
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		tests.Write(text)
	}
	list := inSource(t)
	assert.Greater(t, len(list), 45)
	for _, code := range list {
		assert.Contains(t, section, "| `"+code+"`", "docs/doctor.md")
		if code != Unauthorized && code != Mismatch && code != Busy && code != NotMet { // by their constants
			assert.Contains(t, tests.String(), `"`+code+`"`, "no test plants it")
		}
	}
}

func TestOnAnotherSystemThatIsWhatIsSaid(t *testing.T) {
	for _, system := range []string{"darwin/arm64", "windows/amd64"} {
		r := &Report{Host: Host{Facts: machine.Facts{OS: system}, NoLibrary: "needs Linux", Bare: true}}
		found := Findings(r)
		require.Len(t, found, 1)
		assert.Equal(t, []any{"unsupported-system", doctor.Error}, []any{found[0].Code, found[0].Severity})
		assert.Contains(t, found[0].Seen, system)
	}
}

func TestAReportOfNothingIsJudged(t *testing.T) {
	assert.NotPanics(t, func() {
		Findings(&Report{})
		Findings(&Report{Reach: []Reach{{}, {From: "x", Interface: "y", Fits: Lost}}, Meeting: &Meeting{Far: &Host{}, Missed: "x", CutShort: "y", Rails: []Rail{{}, {Failed: "x"}, {Guess: true, Failed: "y"}, {Trips: []Trips{{Wrong: 1, P50Us: 99, Bytes: 16}}}}}})
		Findings(&Report{Host: Host{Devices: []Device{{Failed: "x"}, {Ports: []Port{{}, {State: "active", Link: "Ethernet"}}}, {PCI: &PCI{}}}}})
	})
}

// onTheWay is a report whose way has this, on a host with one port that can be used.
func onTheWay(change func(*Report)) *Report {
	port := func(address string) Device {
		return Device{Name: "mlx5_0", Listed: true, Ports: []Port{{Number: 1, State: "active", Link: "Ethernet", MTU: 4096, NetDev: "eth1", Chosen: 3, GIDs: []GID{{Index: 3, Type: "RoCE v2", Address: address, Bits: 24, NetDev: "eth1"}}}}}
	}
	interfaces := []machine.Interface{{Name: "eth0", Up: true, MTU: 1500}, {Name: "eth1", Up: true, MTU: 9000}}
	r := &Report{Host: Host{Facts: machine.Facts{OS: "linux/amd64"}, Devices: []Device{port("10.0.1.1")}, Interfaces: interfaces}}
	r.Meeting = &Meeting{Peer: "10.0.1.2:7999", Address: "10.0.1.1", FarAddress: "10.0.1.2", Far: &Host{Facts: r.Host.Facts, Devices: []Device{port("10.0.1.2")}, Interfaces: interfaces}}
	end := RailEnd{Device: "mlx5_0", Port: 1, GID: "10.0.1.1", MTU: 4096, NetDev: "eth1"}
	r.Meeting.Rails = []Rail{{Near: end, Far: end, MTU: 4096, Trips: []Trips{{Bytes: smallBytes, Samples: 9, P50Us: 4}}}}
	change(r)
	return r
}

func TestWhatTheWaySaysIsJudged(t *testing.T) {
	way := func(w Reach) func(*Report) {
		return func(r *Report) { r.Meeting = nil; r.Reach = []Reach{w} }
	}
	good := Reach{Peer: "10.0.1.2", From: "10.0.1.1", Interface: "eth1", Device: "mlx5_0", Port: 1, Subnet: "10.0.1.0/24", Neighbour: "answers", Answers: true, Size: 4160, Fits: Passes}
	of := func(change func(*Reach)) func(*Report) {
		w := good
		change(&w)
		return way(w)
	}
	for _, c := range []struct {
		code, says, mends string
		severity          doctor.Severity
		with, not         func(*Report)
	}{
		{"no-route", "no route to 10.0.1.2", "ip route get 10.0.1.2", doctor.Error, way(Reach{Peer: "10.0.1.2"}), way(good)},
		{"not-a-rail", "leaves by eth0, which is no port", "the peer's address on the cable", doctor.Warning, of(func(w *Reach) { w.Interface, w.Device, w.Subnet = "eth0", "", "" }), way(good)},
		{"not-a-rail", "though 10.0.1.0/24 of a port has it", "ip route show to match 10.0.1.2", doctor.Warning, of(func(w *Reach) { w.Interface, w.Device = "eth0", "" }), func(r *Report) {
			w := good
			w.Interface, w.Device = "eth0", ""
			r.Reach = []Reach{w} // of a peer with which queue pairs were tried: TCP may go another way
		}},
		{"silent-neighbour", "nobody on eth1's link answers for 10.0.1.2", "ip neigh show 10.0.1.2", doctor.Error, of(func(w *Reach) { w.Neighbour, w.Answers, w.Fits = "silent", false, "" }), of(func(w *Reach) { w.Neighbour = "" })},
		{"path-mtu", "a packet of 4160 bytes to 10.0.1.2 is lost", "ping -M do -c 3 -s 4132 10.0.1.2", doctor.Warning, of(func(w *Reach) { w.Fits = Lost }), way(good)},
		{"path-mtu", "is too large here", "ip link set dev eth1 mtu 9000", doctor.Warning, of(func(w *Reach) { w.Fits = TooLarge }), func(r *Report) {
			w := good
			w.Fits = TooLarge
			r.Reach = []Reach{w} // of a peer with which queue pairs were tried
		}},
		{"no-answer", "does not say that a closed port is closed", "ping -M do", doctor.Note, of(func(w *Reach) { w.Answers, w.Fits = false, "" }), of(func(w *Reach) { w.Answers, w.Fits = false, Passes })},
		{"rail-failed", "no way from the one GID to the other", "ip route get 10.0.1.1 oif eth1", doctor.Error, func(r *Report) { r.Meeting.Rails[0].fail(StepConnect, "the peer: no", CauseWay) }, func(*Report) {}},
		{"rail-failed", "could not be made", "on the host that says so", doctor.Error, func(r *Report) { r.Meeting.Rails[0].fail(StepOpen, "this host: no", CauseOther) }, func(r *Report) {
			bad := r.Meeting.Rails[0]
			bad.Guess = true
			bad.fail(StepSmall, "this host: no", CauseWay)
			r.Meeting.Rails = append(r.Meeting.Rails, bad)
		}},
		{"long-round-trip", "21 us for 16 bytes", "cpupower idle-set", doctor.Warning, func(r *Report) { r.Meeting.Rails[0].Trips[0].P50Us = 21 }, func(r *Report) { r.Meeting.Rails[0].Trips[0].P50Us = 99; r.Host.Devices[0].Software = true }},
		{"same-host", "an address of this host", "on the other host", doctor.Note, func(r *Report) { r.Meeting.FarAddress = r.Meeting.Address }, func(*Report) {}},
		{"cut-short", "broke off: x", "--timeout 10m", doctor.Error, func(r *Report) { r.Meeting.CutShort = "x" }, func(*Report) {}},
		{Mismatch, "v2", "hipfabric version", doctor.Error, func(r *Report) { r.Meeting.Missed, r.Meeting.Text = Mismatch, "v2" }, func(*Report) {}},
	} {
		t.Run(c.code+" "+c.says, func(t *testing.T) {
			for _, f := range Findings(onTheWay(c.not)) {
				assert.NotEqual(t, c.code, f.Code, "%+v", f)
			}
			said := false
			for _, f := range Findings(onTheWay(c.with)) {
				if f.Code == c.code && strings.Contains(f.Seen+"\n"+f.Why, c.says) {
					said = true
					assert.Equal(t, c.severity, f.Severity)
					assert.Contains(t, strings.Join(f.Mend, "\n"), c.mends)
				}
			}
			assert.True(t, said)
		})
	}
}

func TestTheWorstComesFirst(t *testing.T) {
	r := onTheWay(func(r *Report) {
		r.Host.Devices[0].Software = true
		r.Host.Devices[0].Ports[0].MTU = 1024
		r.Meeting.Rails[0].fail(StepSmall, "no", CauseWay)
	})
	var order []doctor.Severity
	for _, f := range Findings(r) {
		order = append(order, f.Severity)
	}
	assert.Equal(t, []doctor.Severity{doctor.Error, doctor.Warning, doctor.Note}, order)
}

func TestAWayNeedsASubnetThatBothShare(t *testing.T) {
	gid := func(address string, bits int) GID { return GID{Type: "RoCE v2", Address: address, Bits: bits} }
	for _, c := range []struct {
		a, b GID
		want bool
	}{
		{gid("10.0.0.1", 24), gid("10.0.0.2", 24), true},
		{gid("10.0.0.1", 24), gid("10.0.1.2", 24), false},
		{gid("10.0.0.1", 16), gid("10.0.1.2", 24), false}, // the longer prefix counts
		{gid("10.0.1.1", 16), gid("10.0.1.2", 24), true},
		{gid("10.0.0.1", 0), gid("10.0.0.2", 24), true}, // an address in another network namespace
		{gid("10.0.0.1", 0), gid("10.0.0.2", 0), false},
		{gid("fd00::1", 64), gid("fd00::2", 64), true},
		{gid("fd00::1", 64), gid("10.0.0.2", 24), false},
		{gid("10.0.0.1", 24), gid("10.0.0.2", 99), false},
		{gid("x", 24), gid("10.0.0.2", 24), false},
	} {
		assert.Equal(t, c.want, c.a.shares(c.b), "%v %v", c.a, c.b)
		assert.Equal(t, c.want, c.b.shares(c.a), "%v %v", c.b, c.a)
	}
}

func TestAGIDIsChosenByTypeAndAddress(t *testing.T) {
	v2 := func(index int, address string) GID { return GID{Index: index, Type: "RoCE v2", Address: address} }
	for _, c := range []struct {
		table []GID
		want  int
		why   string
	}{
		{nil, -1, ""},
		{[]GID{{Index: 0, Type: "RoCE v1", Address: "10.0.0.1"}}, -1, ""},
		{[]GID{{Index: 0, Type: "InfiniBand", Address: "fe80::1"}}, -1, ""},
		{[]GID{v2(12, "fe80::1")}, 12, "link-local, as there is no other"},
		{[]GID{v2(0, "fe80::1"), v2(3, "fd00::1"), {Index: 2, Type: "RoCE v1", Address: "10.0.0.1"}}, 3, "global IPv6, as there is no IPv4"},
		{[]GID{v2(0, "fe80::1"), v2(3, "fd00::1"), v2(200, "10.0.0.1"), v2(201, "10.0.0.2")}, 200, "IPv4"},
		{[]GID{v2(0, "169.254.1.1"), v2(1, "fd00::1")}, 1, "global IPv6, as there is no IPv4"},
		{[]GID{v2(0, "::"), v2(1, "not an address")}, -1, ""},
	} {
		p := Port{GIDs: c.table}
		p.choose()
		assert.Equal(t, []any{c.want, c.why}, []any{p.Chosen, p.Why}, "%v", c.table)
	}
}

func TestACapabilityListThatIsBrokenEnds(t *testing.T) {
	space := make([]byte, 4096)
	space[0x100], space[0x102], space[0x103] = 1, 0, 0x10 // which names itself as the next
	assert.False(t, redirects(space))
	space[0x103] = 0xff
	assert.False(t, redirects(space[:0xff2]))
	assert.False(t, redirects(nil))
}

func TestABusCarriesWhatItsLanesDo(t *testing.T) {
	for gbps, p := range map[float64]*PCI{0: nil, 126.03: {GTs: 16, Lanes: 8}, 64: {GTs: 5, Lanes: 16}} {
		assert.InDelta(t, gbps, p.Gbps(), 0.1)
	}
	assert.Zero(t, (&PCI{}).Gbps())
	assert.Zero(t, transfers("Unknown"))
	assert.InDelta(t, 2.5, transfers("2.5 GT/s PCIe"), 0)
}
