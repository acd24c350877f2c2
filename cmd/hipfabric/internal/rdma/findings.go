package rdma

import (
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
)

// The hosts of findings; "" is the way between.
const (
	ThisHost = "this host"
	ThePeer  = "the peer"
)

// Findings judges a report. It depends on nothing else: no clock, no system. The worst comes first.
func Findings(r *Report) []doctor.Finding {
	found := []doctor.Finding{}
	for _, e := range r.ends() {
		for _, rule := range hostRules() {
			for _, f := range rule(e) {
				f.Host = e.name()
				found = append(found, f)
			}
		}
	}
	for _, rule := range wayRules() {
		found = append(found, rule(r)...)
	}
	rank := map[doctor.Severity]int{doctor.Error: 0, doctor.Warning: 1, doctor.Note: 2}
	slices.SortStableFunc(found, func(a, b doctor.Finding) int { return rank[a.Severity] - rank[b.Severity] })
	return found
}

type hostRule func(side) []doctor.Finding

func hostRules() []hostRule {
	return []hostRule{noLibrary, noDevice, absent, driverNotLoaded, notListed, noNode, noPermission, notOpened, memlock, noPort, selfTested, portDown, noGID, linkLocalOnly, otherNamespace,
		smallMTU, sharedSubnet, bus, iommu, moderation, counted, countedNow, acsRedirects, noECN, software, foreign, infinibandPort, firewall}
}

type wayRule func(*Report) []doctor.Finding

func wayRules() []wayRule {
	return []wayRule{reached, missedPeer, cutShort, sameHost, noRail, railFailed, wrongBytes, unequalMTU, slowTrip}
}

// side is one host of the report, as findings name it.
type side struct {
	*Host
	near bool
}

func (r *Report) ends() []side {
	list := []side{{&r.Host, true}}
	if r.Meeting != nil && r.Meeting.Far != nil && !r.Meeting.loopback() {
		list = append(list, side{r.Meeting.Far, false})
	}
	return list
}

// loopback says that the peer is this host: both ends of the connection have the same address.
func (m *Meeting) loopback() bool { return m.Address != "" && m.Address == m.FarAddress }

func (e side) name() string {
	if e.near {
		return ThisHost
	}
	return ThePeer
}

// ports are all of the host's, with their devices.
func (h *Host) ports() []place {
	var list []place
	for i := range h.Devices {
		for j := range h.Devices[i].Ports {
			list = append(list, place{h.Devices[i].Name, &h.Devices[i].Ports[j]})
		}
	}
	return list
}

func (h *Host) device(name string) *Device {
	if i := slices.IndexFunc(h.Devices, func(d Device) bool { return d.Name == name }); i >= 0 {
		return &h.Devices[i]
	}
	return &Device{}
}

// opened says whether libibverbs opened any device, so that its ports can be judged.
func (h *Host) opened() bool {
	return slices.ContainsFunc(h.Devices, func(d Device) bool { return d.Listed && d.Failed == "" })
}

// interfaceOf is a name to write into a command.
func (p place) netdev() string {
	if p.port.NetDev == "" {
		return "IFACE"
	}
	return p.port.NetDev
}

func one(f doctor.Finding) []doctor.Finding {
	f.Seen = strings.TrimSpace(f.Seen)
	return []doctor.Finding{f}
}

// severe is bad where nothing else can be used, and else mild.
func (h *Host) severe(bad, mild doctor.Severity) doctor.Severity {
	if len(h.usable()) == 0 {
		return bad
	}
	return mild
}
