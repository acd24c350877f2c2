package doctor

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

// cable is an interface without anything to complain of.
func cable(name, address string) machine.Interface {
	return machine.Interface{Name: name, Addresses: []string{address, "fe80::1/64"}, MTU: 9000, Up: true, Driver: "ixgbe", Mbits: 10_000, Duplex: "full", RxUsecs: 1, RPFilter: 0}
}

func host(address, prefix string) Host {
	return Host{Name: "box", Facts: machine.Facts{Governor: "performance"}, Address: address, Interface: "eth1", Changes: map[string]int64{"rx_errors": 0},
		Interfaces: []machine.Interface{{Name: "lo", Addresses: []string{"127.0.0.1/8"}, MTU: 65536, Up: true, Loopback: true, RxUsecs: -1, RPFilter: -1}, cable("eth1", address+prefix)}}
}

// healthy is a way without a finding: two hosts and one 10 Gb/s cable.
func healthy() *Report {
	r := &Report{Schema: Schema, Peer: "10.0.1.2:7999", FarCommand: "hipfabric doctor links --listen 10.0.1.2:7999", Near: host("10.0.1.1", "/24"),
		Trips: []RoundTrips{{Wait: Spinning, Bytes: 16, Samples: 9, P50Us: 30, P99Us: 60}, {Wait: Blocking, Bytes: 16, Samples: 9, P50Us: 60, P99Us: 300}}}
	far := host("10.0.1.2", "/24")
	r.Far = &far
	for _, lanes := range []int{1, 2, 4, 8} {
		for _, direction := range []string{ToPeer, FromPeer} {
			r.Rates = append(r.Rates, Rate{Lanes: lanes, Direction: direction, Bytes: 600 << 20, Seconds: 0.5, GBps: 1.2, Gbps: 9.6, Segments: 100_000, Retransmits: 50, MSS: 8948, PathMTU: 9000})
		}
	}
	return r
}

func (h *Host) set(change func(*machine.Interface)) {
	for i := range h.Interfaces {
		if h.Interfaces[i].Name == h.Interface {
			change(&h.Interfaces[i])
		}
	}
}

func missing(r *Report, kind string) {
	r.NotReached, r.Far, r.Trips, r.Rates = &NotReached{Kind: kind, Text: "what was seen", WaitedMs: 5000, Address: "10.0.1.1"}, nil, nil, nil
	r.Near.Address, r.Near.Interface, r.Near.Changes = "", "", nil
}

func onLoopback(r *Report) {
	r.Peer = "127.0.0.1:7999"
	r.Near.Address, r.Near.Interface = "127.0.0.1", "lo"
	r.Far.Address, r.Far.Interface = "127.0.0.1", "lo"
}

// cases has for each finding what brings it, and the nearest to it that does not.
func cases() []findingCase {
	near := func(change func(*machine.Interface)) func(*Report) { return func(r *Report) { r.Near.set(change) } }
	far := func(change func(*machine.Interface)) func(*Report) { return func(r *Report) { r.Far.set(change) } }
	rates := func(change func(*Rate)) func(*Report) {
		return func(r *Report) {
			for i := range r.Rates {
				change(&r.Rates[i])
			}
		}
	}
	failing := func(kind string) func(*Report) { return func(r *Report) { missing(r, kind) } }
	reached := func(*Report) {}
	second := func(address string) func(*Report) {
		return func(r *Report) { r.Near.Interfaces = append(r.Near.Interfaces, cable("eth2", address)) }
	}
	small := func(mbits int) func(*Report) {
		return func(r *Report) {
			change := func(i *machine.Interface) { i.MTU, i.Mbits = 1500, mbits }
			r.Near.set(change)
			r.Far.set(change)
			for i := range r.Rates {
				r.Rates[i].PathMTU, r.Rates[i].Gbps = 1500, float64(mbits)/1000
			}
		}
	}
	return []findingCase{
		{"refused", Error, "nothing listens", "on the peer: hipfabric doctor links --listen 10.0.1.2:7999", failing(Refused), reached},
		{"silent", Error, "nothing answered at 10.0.1.2:7999 in 5.0 s", "ufw allow from 10.0.1.1 to any port 7999 proto tcp", failing(Silent), reached},
		{"unreachable", Error, "what was seen", "ip route get 10.0.1.2", failing(Unreachable), reached},
		{"unauthorized", Error, "same secret", "--secret-file hipfabric.key", failing(Unauthorized), reached},
		{"mismatch", Error, "same version", "hipfabric version", failing(Mismatch), reached},
		{"stranger", Error, "some other program's", "ss -ltnp 'sport = :7999'", failing(Stranger), reached},
		{"busy", Error, "being measured by another", "try again", failing(Busy), reached},
		{"mute", Error, "says nothing", "ss -ltnp", failing(Mute), reached},
		{"cut-short", Error, "not done within 1m", "--timeout 5m", func(r *Report) { r.CutShort = "not done within 1m" }, reached},
		{"same-host", Note, "an address of this host", "", onLoopback, reached},
		{"large-segments-lost", Error, "only 16 bytes arrived", "ping -M do -s 8972 10.0.1.2", rates(func(r *Rate) { r.Bytes, r.Gbps, r.Stalled = 16, 0, true }), rates(func(r *Rate) { r.Bytes = 16 })},
		{"stalled", Error, "did not all arrive", "--time 5s", rates(func(r *Rate) { r.Stalled = true }), rates(func(r *Rate) { r.Bytes, r.Gbps, r.Stalled = 16, 0, true })},
		{"path-mtu", Warning, "packets of 8999 bytes", "tracepath", rates(func(r *Rate) { r.PathMTU = 8999 }), rates(func(r *Rate) { r.PathMTU = 9001 })},
		{"unequal-mtu", Warning, "MTU 9000 on eth1 here, 1500 on eth1 there", "ip link set dev eth1 mtu 9000      (the peer)", far(func(i *machine.Interface) { i.MTU = 1500 }), reached},
		{"unequal-mtu", Warning, "MTU 1500 on eth1 here, 9000 on eth1 there", "ip link set dev eth1 mtu 9000      (this host)", near(func(i *machine.Interface) { i.MTU = 1500 }), reached},
		{"small-mtu", Note, "MTU 1500 on a link of 10000", "mtu 9000", small(10_000), small(2500)},
		{"loss", Warning, "60 of 100000", "ethtool -S eth1", rates(func(r *Rate) { r.Retransmits = 60 }), func(r *Report) { onLoopback(r); rates(func(r *Rate) { r.Retransmits = 60 })(r) }},
		{"loss", Error, "2000 of 100000", "ethtool -S eth1", rates(func(r *Rate) { r.Retransmits = 2000 }), rates(func(r *Rate) { r.Segments, r.Retransmits = -1, -1 })},
		{"interface-errors", Warning, "rx_crc_errors +3", "ethtool -S eth1", func(r *Report) { r.Far.Changes = map[string]int64{"rx_crc_errors": 3} }, func(r *Report) { r.Far.Changes = map[string]int64{"other": 3} }},
		{"link-lost", Error, "2 times", "dmesg", func(r *Report) { r.Near.Changes = map[string]int64{"carrier_changes": 2} }, func(r *Report) { r.Near.Changes = map[string]int64{"carrier_changes": 0} }},
		{"half-duplex", Error, "half duplex", "autoneg on", near(func(i *machine.Interface) { i.Duplex = "half" }), near(func(i *machine.Interface) { i.Duplex = "" })},
		{"slow", Warning, "5.90 Gb/s at best", "mpstat", rates(func(r *Rate) { r.Gbps = 5.9 }), func(r *Report) {
			rates(func(r *Rate) { r.Gbps = 5.9 })(r)
			near(func(i *machine.Interface) { i.Driver = "veth" })(r)
		}},
		{"unequal-directions", Warning, "9.60 Gb/s to the peer, 4.70 from it", "damaged cable", rates(func(r *Rate) {
			if r.Direction == FromPeer {
				r.Gbps = 4.7
			}
		}), rates(func(r *Rate) {
			if r.Direction == FromPeer {
				r.Gbps = 6.1
			}
		})},
		{"lanes", Note, "4 lanes carry 6.50 Gb/s, 8 carry 9.60", "Config.Lanes = 8", rates(func(r *Rate) {
			if r.Lanes <= 4 {
				r.Gbps = 6.5
			}
		}), rates(func(r *Rate) {
			if r.Lanes <= 4 {
				r.Gbps = 8.5
			}
		})},
		{"long-round-trip", Warning, "151 us for 16 bytes", "cpupower idle-set", func(r *Report) { r.Trips[0].P50Us, r.Trips[1].P50Us = 151, 300 }, func(r *Report) { r.Trips[0].P50Us = 151 }},
		{"busy-cores", Warning, "120 us spinning and 60 blocking", "top", func(r *Report) { r.Trips[0].P50Us = 120 }, func(r *Report) { r.Trips[0].P50Us = 119 }},
		{"interrupt-moderation", Warning, "rx-usecs 64", "ethtool -C eth1 rx-usecs 0", near(func(i *machine.Interface) { i.RxUsecs = 64 }), near(func(i *machine.Interface) { i.RxUsecs = 63 })},
		{"interrupt-moderation", Warning, "rx-usecs 100", "ethtool -C eth1 adaptive-rx off rx-usecs 0", far(func(i *machine.Interface) { i.RxUsecs, i.AdaptiveRx = 100, true }), far(func(i *machine.Interface) { i.RxUsecs = -1 })},
		{"interrupt-moderation", Warning, "holds interrupts back for 128 us", "sysctl -w net.core.busy_read=50", near(func(i *machine.Interface) { i.Driver, i.RxUsecs = "thunderbolt-net", -1 }), reached},
		{"usb4-speed", Note, "negotiated 20000 Mb/s", "tx_speed", far(func(i *machine.Interface) { i.Driver, i.Mbits = "thunderbolt-net", 20_000 }), far(func(i *machine.Interface) { i.Driver, i.Mbits = "thunderbolt-net", 40_000 })},
		{"governor", Note, "powersave", "cpupower frequency-set", func(r *Report) { r.Far.Governor = "powersave" }, func(r *Report) { r.Far.Governor = "schedutil" }},
		{"shared-subnet", Error, "eth1 and eth2 both have an address in 10.0.1.0/24", "dev eth2", second("10.0.1.9/24"), second("10.0.2.9/24")},
		{"shared-subnet", Error, "both have an address in 10.0.1.0/24", "dev eth2", second("10.0.0.9/16"), func(r *Report) { second("10.0.1.9/24")(r); r.Near.Interfaces[2].Container = true }},
		{"strict-rp-filter", Warning, "is 1 (strict), and the host has 2", "sysctl -w net.ipv4.conf.eth1.rp_filter=2", func(r *Report) { second("10.0.2.9/24")(r); near(func(i *machine.Interface) { i.RPFilter = 1 })(r) },
			near(func(i *machine.Interface) { i.RPFilter = 1 })},
		{"container-bridge", Warning, "a bridge of containers", "ip -br addr", far(func(i *machine.Interface) { i.Container, i.Driver = true, "bridge" }), far(func(i *machine.Interface) { i.Container, i.Driver = true, "veth" })},
		{"wireless", Warning, "wireless", "ip -br addr", near(func(i *machine.Interface) { i.Wireless = true }), reached},
		{"routed", Note, "192.168.7.2 is in no subnet of eth1 (10.0.1.1/24", "ip route get 192.168.7.2", func(r *Report) { r.Far.Address = "192.168.7.2" }, func(r *Report) { r.Far.Address = "fe80::2" }},
		{"firewall", Note, "ufw at work", "ufw allow from 10.0.1.1 to any port PORT proto tcp", func(r *Report) { r.Far.Firewalls = []string{"ufw"} }, func(r *Report) { onLoopback(r); r.Near.Firewalls = []string{"ufw"} }},
	}
}

type findingCase struct {
	code      string
	severity  Severity
	says      string // somewhere in the finding
	mends     string // in one of the commands
	with, not func(*Report)
}

func TestAHealthyWayHasNoFinding(t *testing.T) {
	assert.Empty(t, Findings(healthy()))
	assert.NotNil(t, Findings(healthy()), "an empty list in JSON, not null")
}

func TestEachFindingIsFoundAndItsNeighbourIsNot(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.code+" "+c.says, func(t *testing.T) {
			r := healthy()
			c.not(r)
			for _, f := range Findings(r) {
				assert.NotEqual(t, c.code, f.Code, "%+v", f)
			}
			r = healthy()
			c.with(r)
			var got []Finding
			for _, f := range Findings(r) {
				if f.Code == c.code {
					got = append(got, f)
				}
			}
			require.NotEmpty(t, got)
			f := got[0]
			assert.Equal(t, c.severity, f.Severity)
			assert.Contains(t, strings.Join([]string{f.Seen, f.Bound, f.Why}, "\n"), c.says)
			assert.Contains(t, strings.Join(f.Mend, "\n"), c.mends)
			for _, text := range []string{f.Seen, f.Bound, f.Why} {
				assert.NotEmpty(t, text)
			}
		})
	}
}

// TestEveryFindingHasACaseAndALineInTheDocument reads the codes from the source, so that none is added without.
func TestEveryFindingHasACaseAndALineInTheDocument(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range cases() {
		tested[c.code] = true
	}
	doc, err := os.ReadFile("../../../../docs/doctor.md")
	require.NoError(t, err)
	named := regexp.MustCompile(`Code: "([a-z-]+)"`)
	found := 0
	for _, file := range []string{"findings.go", "findings_reach.go", "findings_link.go", "findings_host.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			assert.True(t, tested[m[1]], "%s has no case", m[1])
			assert.Contains(t, string(doc), "| `"+m[1]+"`", "docs/doctor.md")
		}
	}
	assert.GreaterOrEqual(t, found, 20)
	for _, kind := range []string{Refused, Silent, Unreachable, Unauthorized, Mismatch, Stranger, Busy, Mute} {
		assert.True(t, tested[kind], "%s has no case", kind)
		assert.Contains(t, string(doc), "| `"+kind+"`", "docs/doctor.md")
	}
}

func TestTheWorstComesFirst(t *testing.T) {
	r := healthy()
	r.Far.Governor = "powersave"
	r.Near.set(func(i *machine.Interface) { i.Duplex, i.Wireless = "half", true })
	var order []Severity
	for _, f := range Findings(r) {
		order = append(order, f.Severity)
	}
	assert.Equal(t, []Severity{Error, Warning, Note}, order)
}

func TestAHostThatIsOnItsLinkPointsToAFirewall(t *testing.T) {
	for _, kind := range []string{Silent, Unreachable} {
		r := healthy()
		missing(r, kind)
		r.NotReached.Neighbour = "answers"
		f := Findings(r)[0]
		assert.Contains(t, f.Why, "ARP", kind)
		assert.Contains(t, strings.Join(f.Mend, "\n"), "nft insert rule inet filter input ip saddr 10.0.1.1 tcp dport 7999 accept")
		assert.Contains(t, strings.Join(f.Mend, "\n"), `firewall-cmd --add-rich-rule='rule family="ipv4" source address="10.0.1.1" port port="7999" protocol="tcp" accept'`)
	}
}

func TestTheLinesForAPortFitTheAddress(t *testing.T) {
	assert.Equal(t, []string{"nft insert rule inet filter input tcp dport 7 accept", "ufw allow 7/tcp", "firewall-cmd --add-port=7/tcp"}, Allow("7", ""))
	six := Allow("7", "fd00::1")
	assert.Contains(t, six[0], "ip6 saddr fd00::1")
	assert.Contains(t, six[2], `family="ipv6"`)
	assert.Equal(t, []string{"firewall-cmd --add-port=7/tcp"}, Pick([]string{"firewalld"}, Allow("7", "")))
	assert.Equal(t, Allow("7", "")[:1], Pick([]string{"iptables"}, Allow("7", "")))
}

func TestAReportOfNothingIsJudged(t *testing.T) {
	assert.NotPanics(t, func() { Findings(&Report{}); assert.NotEmpty(t, (&Report{}).facts()) })
	r := &Report{Far: &Host{}, Rates: []Rate{{}}, Trips: []RoundTrips{{}}}
	assert.NotPanics(t, func() { Findings(r); r.rates(); r.trips() })
}
