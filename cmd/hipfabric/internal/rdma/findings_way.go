package rdma

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
)

// selfTested finds ports whose writes to themselves do not succeed.
func selfTested(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		t := p.port.SelfTest
		if t == nil {
			continue
		}
		where := fmt.Sprintf("%s port %d", p.device, p.port.Number)
		if t.Wrong > 0 {
			found = append(found, wrong("of "+where+" to itself", t.Wrong, []string{"dmesg | tail      (firmware, memory)"}))
		}
		if t.Failed == "" || t.Cause == CauseMemlock || t.Cause == CausePermission || t.Cause == CauseNode {
			continue // what those mean is said elsewhere
		}
		f := doctor.Finding{Code: "self-test", Severity: doctor.Error, Seen: fmt.Sprintf("%s cannot write to itself: %s", where, t.Failed), Bound: "it can", Why: "queue pairs do not work here, so no peer will be reached",
			Mend: []string{"dmesg | tail      (firmware, driver)", "rdma link show " + p.device}}
		if t.Cause == CauseWay {
			f.Severity = doctor.Warning
			f.Why = "a NIC may have its way back to itself switched off; then a peer can be reached all the same"
			f.Mend = []string{"hipfabric doctor rdma --listen ADDRESS      (on another host; then ask it from here)"}
		}
		found = append(found, f)
	}
	return found
}

func wrong(where string, n int, mend []string) doctor.Finding {
	return doctor.Finding{Code: "wrong-bytes", Severity: doctor.Error, Seen: fmt.Sprintf("%d messages %s came with other bytes than were sent", n, where), Bound: "none", Why: "what engines compute would be wrong", Mend: mend}
}

func reached(r *Report) []doctor.Finding {
	var found []doctor.Finding
	for _, way := range r.Reach {
		for _, f := range way.judge(r) {
			f.Host = ThisHost
			found = append(found, f)
		}
	}
	return found
}

func (w Reach) judge(r *Report) []doctor.Finding {
	if w.From == "" {
		return one(doctor.Finding{Code: "no-route", Severity: doctor.Error, Seen: "there is no route to " + w.Peer, Bound: "one", Why: "no packet leaves this host for it", Mend: []string{"ip route get " + w.Peer, "ip -br addr      (both hosts: addresses of one subnet, interfaces UP)"}})
	}
	var found []doctor.Finding
	met := r.Meeting != nil && len(r.Meeting.Rails) > 0 && hostOf(r.Meeting.Peer) == w.Peer // then TCP may go another way
	if i := r.Host.carrier(w.Interface); w.Device == "" && i != nil && !i.Loopback && len(r.Host.usable()) > 0 && !met {
		f := doctor.Finding{Code: "not-a-rail", Severity: doctor.Warning, Seen: fmt.Sprintf("the way to %s leaves by %s, which is no port that RDMA can use", w.Peer, w.Interface), Bound: "an address of the peer in a subnet of a port: " + strings.Join(r.Host.subnets(), ", "),
			Why: "queue pairs go by the port's interface", Mend: []string{"ip route get " + w.Peer, "ip -br addr      (the peer's address on the cable or switch of the port)"}}
		if w.Subnet != "" {
			f.Seen += ", though " + w.Subnet + " of a port has it"
			f.Mend = []string{"ip route show to match " + w.Peer}
		}
		found = append(found, f)
	}
	switch {
	case w.Neighbour == "silent":
		found = append(found, doctor.Finding{Code: "silent-neighbour", Severity: doctor.Error, Seen: fmt.Sprintf("nobody on %s's link answers for %s", w.Interface, w.Peer), Bound: "an answer to ARP, or to IPv6's neighbour solicitation",
			Why: "the peer is off, has another address, or is on another cable or VLAN", Mend: []string{"ip neigh show " + w.Peer + " && ip -d link show dev " + w.Interface, "ping -c 3 " + w.Peer}})
	case met: // large messages went that way, or a finding says that they did not
	case w.Fits == Lost || w.Fits == TooLarge:
		found = append(found, doctor.Finding{Code: "path-mtu", Severity: doctor.Warning, Seen: fmt.Sprintf("a packet of %d bytes to %s is %s, while small ones pass", w.Size, w.Peer, w.Fits), Bound: "it passes whole",
			Why:  "RDMA packets are never fragmented: large messages get stuck where small ones do not, unless the peer's RDMA MTU is small enough",
			Mend: []string{fmt.Sprintf("ping -M do -c 3 -s %d %s", w.Size-28, w.Peer), fmt.Sprintf("ip link set dev %s mtu 9000      (both hosts, and on the switch; or a smaller one on all)", orWord(w.Interface, "IFACE"))}})
	case !w.Answers && w.Fits == "" && strings.HasPrefix(r.Host.OS, "linux"):
		found = append(found, doctor.Finding{Code: "no-answer", Severity: doctor.Note, Seen: w.Peer + " does not say that a closed port is closed", Bound: "ICMP's port unreachable", Why: "a firewall may keep it from that: whether large packets pass was not to be told",
			Mend: []string{fmt.Sprintf("ping -M do -c 3 -s %d %s", max(w.Size-28, 56), w.Peer)}})
	}
	return found
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// subnets are those of ports that a group can use.
func (h *Host) subnets() []string {
	var list []string
	for _, p := range h.usable() {
		if g, ok := p.port.gid(p.port.Chosen); ok && g.prefix().IsValid() {
			list = append(list, fmt.Sprintf("%v (%s)", g.prefix(), p.device))
		}
	}
	return list
}

func missedPeer(r *Report) []doctor.Finding {
	m := r.Meeting
	if m == nil || m.Missed == "" {
		return nil
	}
	f := doctor.Finding{Code: m.Missed, Severity: doctor.Error, Host: ThePeer, Seen: m.Text, Bound: "an answer from hipfabric doctor rdma --listen", Mend: []string{"on the peer: " + m.FarCommand}}
	switch m.Missed {
	case Unauthorized:
		f.Bound = "the same secret on both hosts, or none within one host"
		f.Why = "who cannot prove the secret is not heard; a group of another name, such as a running engine's, refuses alike"
		f.Mend = []string{"hipfabric keygen --force hipfabric.key", "copy hipfabric.key to both hosts and name it to both ends: --secret-file hipfabric.key"}
	case Mismatch:
		f.Bound, f.Why = "the same version on both hosts", "the two could not read each other's messages"
		f.Mend = []string{"hipfabric version      (both hosts; install the newer on both)"}
	case Busy:
		f.Why = "one peer is tried at a time"
		f.Mend = []string{"try again when it has ended"}
	default:
		f.Why = "nothing listens there, a firewall is between, or the address is another's"
		f.Mend = append(f.Mend, "hipfabric doctor links --peer "+m.Peer+"      (with --listen on the peer: it knows more of TCP)")
	}
	return one(f)
}

func cutShort(r *Report) []doctor.Finding {
	if r.Meeting == nil || r.Meeting.CutShort == "" {
		return nil
	}
	return one(doctor.Finding{Code: "cut-short", Severity: doctor.Error, Seen: "the trial broke off: " + r.Meeting.CutShort, Bound: "it ends by itself", Why: "what was not tried may be what is wrong",
		Mend: []string{"hipfabric doctor rdma " + r.Meeting.Peer + " --timeout 10m"}})
}

func sameHost(r *Report) []doctor.Finding {
	if r.Meeting == nil || !r.Meeting.loopback() {
		return nil
	}
	return one(doctor.Finding{Code: "same-host", Severity: doctor.Note, Seen: r.Meeting.Peer + " is an address of this host", Bound: "an address of another host", Why: "no cable was tried", Mend: []string{"hipfabric doctor rdma --listen ADDRESS      (on the other host)"}})
}

func noRail(r *Report) []doctor.Finding {
	m := r.Meeting
	if m == nil || m.Far == nil || len(m.Rails) > 0 || m.CutShort != "" || len(r.Host.usable()) == 0 || len(m.Far.usable()) == 0 {
		return nil
	}
	return one(doctor.Finding{Code: "no-rail", Severity: doctor.Error, Seen: fmt.Sprintf("no subnets meet: here %s; there %s", r.Host.addressed(), m.Far.addressed()), Bound: "an address on each end of a cable or switch, of one subnet",
		Why: "queue pairs go between ports that share a subnet", Mend: []string{"ip addr add 10.77.0.1/24 dev IFACE      (here; 10.77.0.2/24 there; the next cable 10.77.1.0/24)"}})
}

// addressed names the addresses of ports that a group can use.
func (h *Host) addressed() string {
	var list []string
	for _, p := range h.usable() {
		g, _ := p.port.gid(p.port.Chosen)
		bits := ""
		if g.Bits > 0 {
			bits = fmt.Sprintf("/%d", g.Bits)
		}
		list = append(list, fmt.Sprintf("%s %s%s", p.device, g.Address, bits))
	}
	return strings.Join(list, ", ")
}

func (r Rail) String() string {
	return fmt.Sprintf("%s (%s) here and %s (%s) there", r.Near.Device, r.Near.GID, r.Far.Device, r.Far.GID)
}

func railFailed(r *Report) []doctor.Finding {
	if r.Meeting == nil {
		return nil
	}
	var found []doctor.Finding
	for _, rail := range r.Meeting.Rails {
		// Of ways that were guessed, one that works is what was looked for.
		if rail.Failed == "" || rail.Guess && slices.ContainsFunc(r.Meeting.Rails, func(o Rail) bool {
			return o.Failed == "" && (o.Near.at() == rail.Near.at() || o.Far.at() == rail.Far.at())
		}) {
			continue
		}
		netdev := orWord(rail.Near.NetDev, "IFACE")
		severity := doctor.Error
		if r.Meeting.ambiguous(rail) {
			severity = doctor.Warning
		}
		f := doctor.Finding{Code: "rail-failed", Severity: severity, Seen: fmt.Sprintf("between %s: %s", rail, rail.Failed), Bound: "messages and answers"}
		switch {
		case rail.Cause == CauseMemlock:
			f.Why, f.Mend = "the process may not lock so much memory", []string{"ulimit -l unlimited      (on the host that says so)"}
		case rail.Step == StepOpen || rail.Step == StepConnect && rail.Cause != CauseWay:
			f.Why, f.Mend = "the queue pair could not be made", []string{"hipfabric doctor rdma      (on the host that says so)"}
		case rail.Step == StepConnect:
			f.Why = "there is no way from the one GID to the other: the kernel resolves the peer's address as it does for IP"
			f.Mend = []string{fmt.Sprintf("ping -c 3 -I %s %s && ip neigh show %s", netdev, rail.Far.GID, rail.Far.GID), fmt.Sprintf("ip route get %s oif %s", rail.Far.GID, netdev)}
		case rail.Step == StepLarge:
			f.Code = "large-lost"
			f.Why = fmt.Sprintf("small messages pass and packets of %d bytes do not: something between takes less, such as a switch without jumbo frames", rail.MTU)
			f.Mend = []string{fmt.Sprintf("ping -M do -c 3 -s %d %s", rail.MTU+roceHeaders-8, rail.Far.GID), fmt.Sprintf("ip link set dev %s mtu 1500      (both hosts, or a larger one on all that is between)", netdev)}
		default:
			f.Why = "packets of RoCE (UDP to port 4791) do not come through, though addresses resolve: a firewall, another VLAN, a switch that has it as lossy, or crossed cables"
			f.Mend = []string{fmt.Sprintf("ping -c 3 -I %s %s", netdev, rail.Far.GID), fmt.Sprintf("rdma statistic show link %s/%d      (both hosts, before and after)", rail.Near.Device, rail.Near.Port)}
			if r.Host.device(rail.Near.Device).Software || r.Meeting.Far.device(rail.Far.Device).Software {
				f.Mend = append(f.Mend, "nft list ruleset | grep -n drop      (a software device's packets pass the firewall: UDP port 4791)")
			}
		}
		found = append(found, f)
	}
	return found
}

// ambiguous says that a way is one of several by its addresses, and that both its ports have one that works: the two may not be joined.
func (m *Meeting) ambiguous(rail Rail) bool {
	works := func(of func(Rail) [2]any) bool {
		return slices.ContainsFunc(m.Rails, func(o Rail) bool { return o.Failed == "" && of(o) == of(rail) })
	}
	return works(func(r Rail) [2]any { return r.Near.at() }) && works(func(r Rail) [2]any { return r.Far.at() })
}

func wrongBytes(r *Report) []doctor.Finding {
	if r.Meeting == nil {
		return nil
	}
	var found []doctor.Finding
	for _, rail := range r.Meeting.Rails {
		for _, t := range rail.Trips {
			if t.Wrong > 0 {
				found = append(found, wrong("between "+rail.String(), t.Wrong, []string{"ethtool -S " + orWord(rail.Near.NetDev, "IFACE") + " | grep -i err      (both hosts)", "dmesg | tail      (both hosts: firmware, memory)"}))
			}
		}
	}
	return found
}

func unequalMTU(r *Report) []doctor.Finding {
	if r.Meeting == nil {
		return nil
	}
	var found []doctor.Finding
	for _, rail := range r.Meeting.Rails {
		if rail.Near.MTU == rail.Far.MTU || rail.Near.MTU == 0 || rail.Far.MTU == 0 || rail.Guess && rail.Failed != "" {
			continue
		}
		netdev, host := rail.Near.NetDev, ThisHost
		if rail.Far.MTU < rail.Near.MTU {
			netdev, host = rail.Far.NetDev, ThePeer
		}
		found = append(found, doctor.Finding{Code: "unequal-mtu", Severity: doctor.Warning, Host: host, Seen: fmt.Sprintf("RDMA MTU %d on %s here, %d on %s there", rail.Near.MTU, rail.Near.Device, rail.Far.MTU, rail.Far.Device), Bound: "the same on both ends",
			Why: "groups take the smaller; other programs that do not ask get stuck", Mend: []string{fmt.Sprintf("ip link set dev %s mtu 9000      (%s)", orWord(netdev, "IFACE"), host)}})
	}
	return found
}

const longTripUs = 20 // there and back, between RDMA NICs

func slowTrip(r *Report) []doctor.Finding {
	if r.Meeting == nil {
		return nil
	}
	var found []doctor.Finding
	for _, rail := range r.Meeting.Rails {
		if r.Host.device(rail.Near.Device).Software || r.Meeting.Far == nil || r.Meeting.Far.device(rail.Far.Device).Software {
			continue
		}
		for _, t := range rail.Trips {
			if t.Bytes == smallBytes && t.P50Us > longTripUs {
				found = append(found, doctor.Finding{Code: "long-round-trip", Severity: doctor.Warning, Seen: fmt.Sprintf("%.0f us for %d bytes there and back between %s", t.P50Us, t.Bytes, rail), Bound: fmt.Sprintf("%d us", longTripUs),
					Why: "every small call takes at least half of it: deep sleep of the cores, a busy host, or many hops", Mend: []string{"cpupower idle-set -D 20      (both hosts: no deep sleep)", "top -bn1 | head -15      (both hosts)"}})
			}
		}
	}
	return found
}
