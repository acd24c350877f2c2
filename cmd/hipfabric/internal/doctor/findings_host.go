package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

const (
	muchModeration   = 64  // microseconds
	thunderboltUsecs = 128 // that thunderbolt-net's controller holds interrupts back
	longTripUs       = 150
	busySpin         = 2.0 // times a blocking round trip
	usb4Mbits        = 40_000
	thunderboltNet   = "thunderbolt-net"
)

// trip is the median of one way to wait, in microseconds; 0 when it was not measured.
func (r *Report) trip(wait string) float64 {
	for _, t := range r.Trips {
		if t.Wait == wait {
			return t.P50Us
		}
	}
	return 0
}

func roundTrip(r *Report) []Finding {
	best := r.trip(Spinning)
	if blocking := r.trip(Blocking); blocking > 0 {
		best = min(best, blocking) // where it is the faster, the cores are the reason: busyCores
	}
	if best <= longTripUs || r.loopback() {
		return nil
	}
	return one(Finding{Code: "long-round-trip", Severity: Warning, Seen: fmt.Sprintf("%.0f us for %d bytes there and back", best, tripBytes), Bound: fmt.Sprintf("%d us", longTripUs),
		Why:  "every small call takes at least half of it: interrupt moderation, deep sleep of the cores, or many hops",
		Mend: []string{"ethtool -c " + r.Near.Interface + "      (both hosts: rx-usecs)", "cpupower idle-set -D 20      (both hosts: no deep sleep)"}})
}

// busyCores finds that spinning, which should be the fastest, is far from it.
func busyCores(r *Report) []Finding {
	spinning, blocking := r.trip(Spinning), r.trip(Blocking)
	if blocking == 0 || spinning < busySpin*blocking {
		return nil
	}
	return one(Finding{Code: "busy-cores", Severity: Warning, Seen: fmt.Sprintf("a round trip takes %.0f us spinning and %.0f blocking", spinning, blocking), Bound: "spinning is the faster",
		Why: "something else runs on the cores of an end: ranks that spin, as they do at first, lose their core to it", Mend: []string{"top -bn1 | head -15      (both hosts)"}})
}

func moderation(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		i := e.carrier()
		f := Finding{Code: "interrupt-moderation", Severity: Warning, Host: e.name(), Bound: fmt.Sprintf("less than %d us", muchModeration),
			Why: "a small message waits that long before its receiver hears of it, in every call"}
		switch {
		case i.Driver == thunderboltNet:
			f.Seen = fmt.Sprintf("%s (%s) holds interrupts back for %d us", i.Name, i.Driver, thunderboltUsecs)
			f.Why += "; the controller's driver fixes it, and ethtool cannot set it"
			f.Mend = []string{"sysctl -w net.core.busy_read=50      (before the ranks start: their waits then look at the ring themselves, where the driver lets them)"}
		case i.RxUsecs >= muchModeration:
			f.Seen = fmt.Sprintf("%s: rx-usecs %d", i.Name, i.RxUsecs)
			f.Mend = []string{"ethtool -C " + i.Name + " adaptive-rx off rx-usecs 0"}
			if !i.AdaptiveRx {
				f.Mend = []string{"ethtool -C " + i.Name + " rx-usecs 0"}
			}
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// halfSpeed finds a USB4 link that came up with one lane, or slow ones.
func halfSpeed(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		if i := e.carrier(); i.Driver == thunderboltNet && i.Mbits > 0 && i.Mbits < usb4Mbits {
			found = append(found, Finding{Code: "usb4-speed", Severity: Note, Host: e.name(), Seen: fmt.Sprintf("%s negotiated %d Mb/s", i.Name, i.Mbits), Bound: fmt.Sprintf("%d Mb/s", usb4Mbits),
				Why:  "a USB4 link settles on 20 or 40 Gb/s when it is plugged in, by the cable and by what else the port's controller serves",
				Mend: []string{"plug the cable in again, other devices and network cables out; then: cat /sys/bus/thunderbolt/devices/*/tx_speed"}})
		}
	}
	return found
}

func governor(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		if e.Governor == "powersave" || e.Governor == "conservative" {
			found = append(found, Finding{Code: "governor", Severity: Note, Host: e.name(), Seen: "the cores' governor is " + e.Governor, Bound: "performance",
				Why: "cores that slow down between calls answer later", Mend: []string{"cpupower frequency-set -g performance"}})
		}
	}
	return found
}

// subnets are those of an interface that other hosts can share: no loopback, no link-local, no single addresses.
func subnets(i machine.Interface) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range i.Addresses {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast() || p.IsSingleIP() {
			continue
		}
		list = append(list, p.Masked())
	}
	return list
}

// cables are the interfaces that ranks would use.
func (h *Host) cables() []machine.Interface {
	return slices.DeleteFunc(slices.Clone(h.Interfaces), func(i machine.Interface) bool {
		return !i.Up || i.Loopback || i.Container && i.Name != h.Interface || len(subnets(i)) == 0
	})
}

func sharedSubnets(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		cables := e.cables()
		for n, a := range cables {
			for _, b := range cables[n+1:] {
				for _, p := range subnets(a) {
					if !slices.ContainsFunc(subnets(b), p.Overlaps) {
						continue
					}
					found = append(found, Finding{Code: "shared-subnet", Severity: Error, Host: e.name(), Seen: fmt.Sprintf("%s and %s both have an address in %v", a.Name, b.Name, p), Bound: "a subnet of its own for each cable",
						Why:  "the kernel sends all of the subnet out of one of the two and answers ARP on either: one cable stays unused, and bytes may cross",
						Mend: []string{fmt.Sprintf("ip addr del ADDRESS/%d dev %s && ip addr add OTHER-SUBNET/%d dev %s      (and alike at the cable's other end)", p.Bits(), b.Name, p.Bits(), b.Name)}})
				}
			}
		}
	}
	return found
}

func strictFilter(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		cables := e.cables()
		i := e.carrier()
		if len(cables) < 2 || i.RPFilter != 1 || i.Loopback {
			continue
		}
		found = append(found, Finding{Code: "strict-rp-filter", Severity: Warning, Host: e.name(), Seen: fmt.Sprintf("rp_filter of %s is 1 (strict), and the host has %d interfaces with subnets", i.Name, len(cables)), Bound: "2 (loose)",
			Why: "packets that come in by another interface than the answer would take are dropped without a word", Mend: []string{"sysctl -w net.ipv4.conf." + i.Name + ".rp_filter=2"}})
	}
	return found
}

func containerAddress(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		if i := e.carrier(); i.Container && i.Driver != "veth" {
			found = append(found, Finding{Code: "container-bridge", Severity: Warning, Host: e.name(), Seen: fmt.Sprintf("%s is on %s, a bridge of containers", e.Address, i.Name), Bound: "the address of a network interface",
				Why: "other hosts reach it through address translation or not at all; hipfabric leaves such addresses out by itself", Mend: []string{"ip -br addr      (choose the cable's address)"}})
		}
	}
	return found
}

func wireless(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		if i := e.carrier(); i.Wireless {
			found = append(found, Finding{Code: "wireless", Severity: Warning, Host: e.name(), Seen: e.Address + " is on " + i.Name + ", which is wireless", Bound: "a cable",
				Why: "round trips of milliseconds, and losses", Mend: []string{"ip -br addr      (choose the cable's address)"}})
		}
	}
	return found
}

// routed finds that the ends share no subnet.
func routed(r *Report) []Finding {
	if r.Far == nil || r.loopback() {
		return nil
	}
	far, err := netip.ParseAddr(r.Far.Address)
	if err != nil || far.IsLinkLocalUnicast() {
		return nil
	}
	near := r.Near.carrier()
	if near.Name == "" || slices.ContainsFunc(subnets(near), func(p netip.Prefix) bool { return p.Contains(far) }) {
		return nil
	}
	return one(Finding{Code: "routed", Severity: Note, Seen: fmt.Sprintf("%v is in no subnet of %s (%s)", far, near.Name, strings.Join(near.Addresses, ", ")), Bound: "a subnet that both share",
		Why: "the way goes through a router, and ranks do not find further cables to that host by themselves", Mend: []string{"ip route get " + far.String()}})
}
