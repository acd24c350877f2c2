package doctor

import (
	"fmt"
	"slices"
	"strings"
)

const (
	someLoss  = 0.0005 // of segments: beyond what a queue that fills now and then drops
	muchLoss  = 0.01
	smallest  = 1 << 20 // bytes below which a rate has moved nothing to speak of
	slowShare = 0.6     // of the negotiated speed
	oneWay    = 2.0     // between the directions
	gain      = 1.15    // that makes more lanes worth it
	ethernet  = 1500    // bytes, the MTU that nobody chose
	fastMbits = 10_000
)

func stalled(r *Report) []Finding {
	for _, rate := range r.Rates {
		if !rate.Stalled || rate.Bytes >= smallest || len(r.Trips) == 0 {
			continue
		}
		near, far := r.Near.carrier(), r.Far.carrier()
		return one(Finding{Code: "large-segments-lost", Severity: Error, Host: "both", Seen: fmt.Sprintf("small messages pass, but of a stream %s only %d bytes arrived; MTU %d (%s) and %d (%s)",
			rate.Direction, rate.Bytes, near.MTU, near.Name, far.MTU, far.Name), Bound: "segments of the full MTU pass",
			Why: "a switch or tunnel between has a smaller MTU and says nothing: calls beyond a few hundred bytes would hang",
			Mend: []string{fmt.Sprintf("ping -M do -s %d %s      (smaller until it answers)", max(min(near.MTU, far.MTU)-28, 0), r.host()),
				fmt.Sprintf("ip link set dev %s mtu %d      (this host)", near.Name, ethernet), fmt.Sprintf("ip link set dev %s mtu %d      (the peer)", far.Name, ethernet)}})
	}
	for _, rate := range r.Rates {
		if rate.Stalled {
			return one(Finding{Code: "stalled", Severity: Error, Seen: fmt.Sprintf("%d lanes %s: what was sent did not all arrive in time", rate.Lanes, rate.Direction), Bound: "all arrives within seconds",
				Why: "the way loses so much, or is so slow, that calls would run into Timeout", Mend: []string{"hipfabric doctor links --peer " + r.Peer + " --time 5s"}})
		}
	}
	return nil
}

func pathMTU(r *Report) []Finding {
	near, far := r.Near.carrier(), r.Far.carrier()
	bound := min(near.MTU, far.MTU)
	for _, rate := range r.Rates {
		if !r.loopback() && rate.PathMTU > 0 && bound > 0 && rate.PathMTU < bound {
			return one(Finding{Code: "path-mtu", Severity: Warning, Seen: fmt.Sprintf("the way %s takes packets of %d bytes (MSS %d)", rate.Direction, rate.PathMTU, rate.MSS),
				Bound: fmt.Sprintf("%d, the smaller MTU of %s here and %s there", bound, near.Name, far.Name), Why: "something between has a smaller MTU: more packets for the same bytes",
				Mend: []string{"tracepath -n " + r.host() + "      (names the hop)"}})
		}
	}
	return nil
}

func unequalMTU(r *Report) []Finding {
	near, far := r.Near.carrier(), r.Far.carrier()
	if near.MTU == 0 || far.MTU == 0 || near.MTU == far.MTU {
		return nil
	}
	small, large, host := near, far, end{near: true}
	if far.MTU < near.MTU {
		small, large, host = far, near, end{}
	}
	return one(Finding{Code: "unequal-mtu", Severity: Warning, Host: host.name(), Seen: fmt.Sprintf("MTU %d on %s here, %d on %s there", near.MTU, near.Name, far.MTU, far.Name), Bound: "the same on both ends",
		Why:  "TCP falls back to the smaller, and packets of the larger, as RDMA sends, are dropped without a word",
		Mend: []string{fmt.Sprintf("ip link set dev %s mtu %d      (%s)", small.Name, large.MTU, host.name())}})
}

func smallMTU(r *Report) []Finding {
	near, far := r.Near.carrier(), r.Far.carrier()
	if near.MTU != ethernet || far.MTU != ethernet || max(near.Mbits, far.Mbits) < fastMbits || near.Virtual() || far.Virtual() {
		return nil
	}
	return one(Finding{Code: "small-mtu", Severity: Note, Host: "both", Seen: fmt.Sprintf("MTU %d on a link of %d Mb/s", ethernet, max(near.Mbits, far.Mbits)), Bound: "9000 where everything between takes it",
		Why:  "fewer packets cost less of a core for the same bytes",
		Mend: []string{fmt.Sprintf("ip link set dev %s mtu 9000      (this host)", near.Name), fmt.Sprintf("ip link set dev %s mtu 9000      (the peer)", far.Name)}})
}

func loss(r *Report) []Finding {
	worst := Rate{}
	for _, rate := range r.Rates {
		if rate.loss() > worst.loss() {
			worst = rate
		}
	}
	share := worst.loss()
	if share <= someLoss || r.loopback() { // a host drops from itself when it cannot keep up
		return nil
	}
	f := Finding{Code: "loss", Severity: Warning, Seen: fmt.Sprintf("%d of %d segments (%.2g%%) were sent again, %s with %d lanes", worst.Retransmits, worst.Segments, 100*share, worst.Direction, worst.Lanes),
		Bound: fmt.Sprintf("at most %.2g%%", 100*someLoss), Why: "each loss holds a lane up for a round trip or a timer of 200 ms and more",
		Mend: []string{"ethtool -S " + r.Near.carrier().Name + " | grep -Ei 'err|drop|crc|fifo'      (both hosts; then cable, port, pause frames)"}}
	if share > muchLoss {
		f.Severity, f.Bound = Error, fmt.Sprintf("at most %.2g%%, and an error beyond %.2g%%", 100*someLoss, 100*muchLoss)
	}
	return one(f)
}

func errorsSeen(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		var grown []string
		for _, key := range []string{"rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped"} {
			if n := e.Changes[key]; n > 0 {
				grown = append(grown, fmt.Sprintf("%s +%d", key, n))
			}
		}
		if len(grown) > 0 {
			found = append(found, Finding{Code: "interface-errors", Severity: Warning, Host: e.name(), Seen: fmt.Sprintf("%s during the measurement: %s", e.Interface, strings.Join(grown, ", ")), Bound: "none",
				Why: "packets were broken or dropped, and TCP had to send them again", Mend: []string{"ethtool -S " + e.Interface + "      (errors: another cable or port; drops: ethtool -G " + e.Interface + " rx 4096)"}})
		}
	}
	return found
}

func linkLost(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		if n := e.Changes["carrier_changes"]; n > 0 {
			found = append(found, Finding{Code: "link-lost", Severity: Error, Host: e.name(), Seen: fmt.Sprintf("the link of %s went down or up %d times during the measurement", e.Interface, n), Bound: "never",
				Why: "a group on it fails, or goes on over its other rails", Mend: []string{"dmesg | grep " + e.Interface + "      (then cable, port, power saving)"}})
		}
	}
	return found
}

func halfDuplex(r *Report) []Finding {
	var found []Finding
	for _, e := range r.ends() {
		if i := e.carrier(); i.Duplex == "half" {
			found = append(found, Finding{Code: "half-duplex", Severity: Error, Host: e.name(), Seen: i.Name + " runs half duplex", Bound: "full duplex",
				Why: "it cannot send and receive at once, as every exchange does", Mend: []string{"ethtool -s " + i.Name + " autoneg on"}})
		}
	}
	return found
}

// best is the highest rate of a direction; zero when none was measured.
func (r *Report) best(direction string) (best Rate) {
	for _, rate := range r.Rates {
		if rate.Direction == direction && rate.Gbps > best.Gbps {
			best = rate
		}
	}
	return best
}

func slowRate(r *Report) []Finding {
	near, far := r.Near.carrier(), r.Far.carrier()
	if near.Mbits == 0 || far.Mbits == 0 || near.Virtual() || far.Virtual() {
		return nil
	}
	link := float64(min(near.Mbits, far.Mbits)) / 1000
	var found []Finding
	for _, direction := range []string{ToPeer, FromPeer} {
		if best := r.best(direction); best.Gbps > 0 && best.Gbps < slowShare*link {
			found = append(found, Finding{Code: "slow", Severity: Warning, Seen: fmt.Sprintf("%s %.2f Gb/s at best, with %d lanes", direction, best.Gbps, best.Lanes),
				Bound: fmt.Sprintf("%.0f%% of the negotiated %.4g Gb/s", 100*slowShare, link), Why: "the link can do more: a core, an interrupt's core, PCIe lanes or a switch limit it",
				Mend: []string{"ethtool -k " + near.Name + " | grep -E 'segmentation|receive-offload'      (both hosts: on)", "mpstat -P ALL 1      (while it runs: is one core at 100%?)"}})
		}
	}
	return found
}

func unequalRates(r *Report) []Finding {
	to, from := r.best(ToPeer).Gbps, r.best(FromPeer).Gbps
	if to == 0 || from == 0 || r.loopback() || max(to, from) < oneWay*min(to, from) {
		return nil
	}
	return one(Finding{Code: "unequal-directions", Severity: Warning, Seen: fmt.Sprintf("%.2f Gb/s to the peer, %.2f from it", to, from), Bound: fmt.Sprintf("within %.0f times of each other", oneWay),
		Why: "a collective is as fast as the slower direction", Mend: []string{"the slower sender: governor, interrupts and offloads; a damaged cable shows in ethtool -S " + r.Near.Interface}})
}

func moreLanes(r *Report) []Finding {
	const standard = 4
	at := func(lanes int) float64 {
		worst := 0.0
		for _, rate := range r.Rates {
			if rate.Lanes == lanes && (worst == 0 || rate.Gbps < worst) {
				worst = rate.Gbps
			}
		}
		return worst
	}
	var all []int
	for _, rate := range r.Rates {
		if !slices.Contains(all, rate.Lanes) {
			all = append(all, rate.Lanes)
		}
	}
	base, most, lanes := at(standard), 0.0, 0
	for _, n := range all {
		if v := at(n); v > most {
			most, lanes = v, n
		}
	}
	if base == 0 || r.loopback() || most < gain*base {
		return nil
	}
	return one(Finding{Code: "lanes", Severity: Note, Seen: fmt.Sprintf("%d lanes carry %.2f Gb/s, %d carry %.2f, in the slower direction", standard, base, lanes, most),
		Bound: fmt.Sprintf("a group uses %d lanes unless told otherwise", standard), Why: "large calls would be faster", Mend: []string{fmt.Sprintf("Config.Lanes = %d", lanes)}})
}
