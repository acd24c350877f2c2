package rdma

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

func noPort(e side) []doctor.Finding {
	if !e.opened() || len(e.usable()) > 0 {
		return nil
	}
	var names []string
	for _, p := range e.ports() {
		names = append(names, fmt.Sprintf("%s port %d is %s", p.device, p.port.Number, orWord(p.port.State, "of no known state")))
	}
	return one(doctor.Finding{Code: "no-port", Severity: doctor.Error, Seen: "no port can be used: " + orWord(strings.Join(names, ", "), "there is none"), Bound: "an active Ethernet port with a RoCE v2 GID",
		Why: "groups have no way to go but TCP", Mend: []string{"rdma link      (then what is said of each port below)"}})
}

func portDown(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		if p.port.Active() || p.port.State == "" {
			continue
		}
		f := doctor.Finding{Code: "port-down", Severity: e.severe(doctor.Warning, doctor.Note), Seen: fmt.Sprintf("%s port %d (%s) is %s, its link %s", p.device, p.port.Number, orWord(p.port.NetDev, "interface not told"), p.port.State, orWord(p.port.Physical, "not told")),
			Bound: "active, link up", Why: "nothing goes over it", Mend: []string{fmt.Sprintf("ip link set dev %s up", p.netdev())}}
		if i := e.carrier(p.port.NetDev); i != nil && p.port.Physical != "disabled" {
			f.Mend = append(f.Mend, "ethtool "+p.netdev()+"      (Link detected: no: cable, transceiver, the switch's port)")
		}
		found = append(found, f)
	}
	return found
}

// carrier is the interface of a name; nil when it is not here.
func (h *Host) carrier(name string) *machine.Interface {
	if i := slices.IndexFunc(h.Interfaces, func(i machine.Interface) bool { return i.Name == name && name != "" }); i >= 0 {
		return &h.Interfaces[i]
	}
	return nil
}

// noGID finds active ports without an address that a group takes.
func noGID(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		if !p.port.Active() || p.port.Link != "Ethernet" || p.port.Chosen >= 0 {
			continue
		}
		f := doctor.Finding{Code: "no-gid", Severity: e.severe(doctor.Error, doctor.Warning), Seen: fmt.Sprintf("%s port %d has no GID", p.device, p.port.Number), Bound: "a RoCE v2 GID of an IPv4 address",
			Why:  "a port's GIDs are the addresses of its interface",
			Mend: []string{fmt.Sprintf("ip link set dev %s up && ip addr add 10.77.0.1/24 dev %s      (a subnet for each cable or switch)", p.netdev(), p.netdev())}}
		if len(p.port.GIDs) > 0 {
			f.Code, f.Seen = "old-gid", fmt.Sprintf("%s port %d has GIDs of RoCE v1 alone", p.device, p.port.Number)
			f.Why = "RoCE v1 passes no router, and groups do not use it"
			f.Mend = []string{"rdma link show " + p.device, "modprobe -r mlx4_ib mlx4_en mlx4_core && modprobe mlx4_core roce_mode=2      (ConnectX-3; other NICs: newer firmware)"}
			if p.port.NetDev != "" {
				f.Mend = append(f.Mend, "ip addr show dev "+p.port.NetDev)
			}
		}
		found = append(found, f)
	}
	return found
}

func linkLocalOnly(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		g, ok := p.port.gid(p.port.Chosen)
		if !ok || !p.port.Usable() || g.rank() != linkLocal {
			continue
		}
		found = append(found, doctor.Finding{Code: "link-local-only", Severity: doctor.Warning, Seen: fmt.Sprintf("%s port %d has link-local addresses alone (%s)", p.device, p.port.Number, g.Address), Bound: "an IPv4 address",
			Why:  "such an address does not say which ports a cable or switch joins: with several ports ways have to be guessed",
			Mend: []string{fmt.Sprintf("ip addr add 10.77.0.1/24 dev %s      (a subnet for each cable or switch)", p.netdev())}})
	}
	return found
}

func otherNamespace(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		g, ok := p.port.gid(p.port.Chosen)
		if !ok || !p.port.Usable() || g.rank() == linkLocal || g.Bits > 0 {
			continue
		}
		f := doctor.Finding{Code: "other-namespace", Severity: doctor.Warning, Seen: fmt.Sprintf("%s port %d has the address %s, which no interface here has", p.device, p.port.Number, g.Address), Bound: "the port's interface in this network namespace",
			Why: "the subnet's length is not known, and what resolves the peer's address may be another network", Mend: []string{"ip -br addr      (is the program in a network namespace of its own?)"}}
		if e.Place.Container != "" {
			f.Mend = []string{e.run()}
		}
		found = append(found, f)
	}
	return found
}

const (
	fullMTU = 4096 // of RDMA
	needMTU = 4200 // of the interface, for that: headers come on top
)

func smallMTU(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		if !p.port.Usable() || p.port.MTU == 0 || p.port.MTU >= fullMTU || p.port.MaxMTU > 0 && p.port.MaxMTU < fullMTU {
			continue
		}
		f := doctor.Finding{Code: "small-mtu", Severity: doctor.Warning, Bound: fmt.Sprintf("%d, which an interface with an MTU of %d or more has", fullMTU, needMTU),
			Why: "smaller packets mean more headers and more work for both ends", Mend: []string{fmt.Sprintf("ip link set dev %s mtu 9000      (on both ends, and on the switch)", p.netdev())}}
		if p.port.Gbps > 0 && p.port.Gbps < 10 {
			f.Severity = doctor.Note
		}
		f.Seen = fmt.Sprintf("%s port %d has an RDMA MTU of %d", p.device, p.port.Number, p.port.MTU)
		if i := e.carrier(p.port.NetDev); i != nil {
			f.Seen += fmt.Sprintf(", as %s has an MTU of %d", i.Name, i.MTU)
			if i.MTU >= needMTU {
				f.Seen = fmt.Sprintf("%s port %d has an RDMA MTU of %d, though %s has %d", p.device, p.port.Number, p.port.MTU, i.Name, i.MTU)
				f.Mend = []string{fmt.Sprintf("ip link set dev %s down && ip link set dev %s up      (the port takes a new MTU when it comes up)", i.Name, i.Name)}
			}
		}
		found = append(found, f)
	}
	return found
}

func sharedSubnet(e side) []doctor.Finding {
	var found []doctor.Finding
	list := e.usable()
	for n, a := range list {
		for _, b := range list[n+1:] {
			if a.port.NetDev == b.port.NetDev && a.port.NetDev != "" {
				continue
			}
			x, _ := a.port.gid(a.port.Chosen)
			y, _ := b.port.gid(b.port.Chosen)
			if x.rank() == linkLocal || y.rank() == linkLocal || !x.prefix().IsValid() || !y.prefix().IsValid() || !x.prefix().Overlaps(y.prefix()) {
				continue
			}
			found = append(found, doctor.Finding{Code: "shared-subnet", Severity: doctor.Warning, Seen: fmt.Sprintf("%s (%s) and %s (%s) both have an address in %v", a.device, a.netdev(), b.device, b.netdev(), x.prefix()), Bound: "a subnet of its own for each cable or switch",
				Why:  "the kernel answers for both addresses on either interface, so that a peer may send to the wrong port; and which ports are joined cannot be told",
				Mend: []string{fmt.Sprintf("ip addr del %s/%d dev %s && ip addr add OTHER-SUBNET/%d dev %s      (and alike at the other end)", y.Address, y.Bits, b.netdev(), y.Bits, b.netdev())}})
		}
	}
	return found
}

func infinibandPort(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		if p.port.Link != "InfiniBand" {
			continue
		}
		where := "PCI-ADDRESS"
		if pci := e.device(p.device).PCI; pci != nil {
			where = pci.Address
		}
		found = append(found, doctor.Finding{Code: "infiniband-port", Severity: doctor.Note, Seen: fmt.Sprintf("%s port %d is an InfiniBand port", p.device, p.port.Number), Bound: "an Ethernet port",
			Why: "groups use RoCE", Mend: []string{fmt.Sprintf("mstconfig -d %s set LINK_TYPE_P%d=2      (a ConnectX that can do both; then boot)", where, p.port.Number)}})
	}
	return found
}

func foreign(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, d := range e.Devices {
		if d.Foreign {
			found = append(found, doctor.Finding{Code: "not-roce", Severity: e.severe(doctor.Error, doctor.Note), Seen: d.Name + " does not speak RoCE (iWARP, EFA or alike)", Bound: "a RoCE device",
				Why: "groups need reliable connections over RoCE", Mend: []string{"rdma dev show " + d.Name}})
		}
	}
	return found
}

func software(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, d := range e.Devices {
		if d.Software {
			found = append(found, doctor.Finding{Code: "software-device", Severity: doctor.Note, Seen: d.Name + " is RDMA in software, over an ordinary interface", Bound: "an RDMA NIC",
				Why: "it is there to try RDMA: TCP is faster", Mend: []string{"rdma link delete " + d.Name + "      (when it is no longer needed)"}})
		}
	}
	return found
}
