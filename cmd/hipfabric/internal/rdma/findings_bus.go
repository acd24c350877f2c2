package rdma

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
)

// bus finds links that carry more than the bus behind them.
func bus(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, d := range e.Devices {
		link := 0.
		for _, p := range d.Ports {
			if p.Active() {
				link += p.Gbps
			}
		}
		carries := d.PCI.Gbps()
		if carries == 0 || link <= carries {
			continue
		}
		f := doctor.Finding{Code: "pcie", Severity: doctor.Warning, Seen: fmt.Sprintf("%s has %d lanes of PCIe at %g GT/s, which carry %.0f Gb/s, and a link of %.0f", d.Name, d.PCI.Lanes, d.PCI.GTs, carries, link),
			Bound: "a bus that carries what the link does", Why: "this device cannot fill its link; a NIC that shows up as two devices may need both",
			Mend: []string{fmt.Sprintf("lspci -vv -s %s | grep -E 'LnkCap:|LnkSta:'      (another slot; the slot's speed in the firmware's setup)", d.PCI.Address)}}
		if d.PCI.Lanes < d.PCI.MaxLanes || d.PCI.GTs < d.PCI.MaxGTs {
			f.Seen += fmt.Sprintf("; it can do %d at %g", d.PCI.MaxLanes, d.PCI.MaxGTs)
		}
		found = append(found, f)
	}
	return found
}

func iommu(e side) []doctor.Finding {
	var names []string
	for _, d := range e.Devices {
		if d.PCI != nil && strings.HasPrefix(d.PCI.IOMMU, "DMA") {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return one(doctor.Finding{Code: "iommu", Severity: doctor.Warning, Seen: "the IOMMU translates what " + strings.Join(names, ", ") + " reads and writes", Bound: "passthrough: the group's type is identity",
		Why:  "translations that are not cached slow the NIC down, and registering memory takes longer",
		Mend: []string{"grubby --update-kernel=ALL --args=iommu=pt && reboot      (Fedora, RHEL; elsewhere: iommu=pt in GRUB_CMDLINE_LINUX of /etc/default/grub, update-grub, reboot)"}})
}

func acsRedirects(e side) []doctor.Finding {
	var bridges []string
	for _, d := range e.Devices {
		if d.PCI == nil {
			continue
		}
		for _, b := range d.PCI.Redirect {
			if !slices.Contains(bridges, b) {
				bridges = append(bridges, b)
			}
		}
	}
	if len(bridges) == 0 {
		return nil
	}
	f := doctor.Finding{Code: "acs", Severity: doctor.Note, Seen: "ACS of " + strings.Join(bridges, ", ") + " sends what devices below say to each other through the root", Bound: "off, on a host of one user",
		Why: "it matters where a GPU and a NIC talk directly; groups, whose memory is the host's, do not need that"}
	for _, b := range bridges {
		f.Mend = append(f.Mend, fmt.Sprintf("setpci -s %s ECAP_ACS+0x6.w=0000      (until the next boot)", b))
	}
	return one(f)
}

const (
	muchModeration = 64 // microseconds
	thunderbolt    = "thunderbolt-net"
)

// moderation matters to software devices: a NIC's own completions do not come by the interface's interrupts.
func moderation(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		i := e.carrier(p.port.NetDev)
		if i == nil || !e.device(p.device).Software || i.RxUsecs < muchModeration && i.Driver != thunderbolt {
			continue
		}
		f := doctor.Finding{Code: "interrupt-moderation", Severity: doctor.Warning, Seen: fmt.Sprintf("%s, which carries %s, has rx-usecs %d", i.Name, p.device, i.RxUsecs), Bound: fmt.Sprintf("less than %d us", muchModeration),
			Why: "each message waits that long before it is looked at", Mend: []string{"ethtool -C " + i.Name + " adaptive-rx off rx-usecs 0"}}
		if i.Driver == thunderbolt {
			f.Seen = fmt.Sprintf("%s (%s), which carries %s, holds interrupts back for 128 us", i.Name, i.Driver, p.device)
			f.Mend = []string{"hipfabric doctor links --help      (TCP can poll the interface: its driver takes no setting)"}
		}
		found = append(found, f)
	}
	return found
}

// counted tells what a port's counters have of trouble since it came up.
func counted(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		names := troubles(p.port.Counters)
		if len(names) == 0 {
			continue
		}
		found = append(found, doctor.Finding{Code: "counted", Severity: doctor.Note, Seen: fmt.Sprintf("%s port %d has counted %s", p.device, p.port.Number, amounts(p.port.Counters, names, "")), Bound: "none that grow",
			Why: "since the driver was loaded, " + trouble(names[0]), Mend: []string{watch(p)}})
	}
	return found
}

// countedNow tells what was counted while queue pairs were tried.
func countedNow(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		changes, during := p.port.Changes, "queue pairs were tried"
		names := troubles(changes)
		if t := p.port.SelfTest; len(names) == 0 && t != nil && t.Failed == "" { // of one that failed, that says enough
			changes, during = t.Changes, "it wrote to itself"
			names = troubles(changes)
		}
		if len(names) == 0 {
			continue
		}
		found = append(found, doctor.Finding{Code: "counted-now", Severity: doctor.Warning, Seen: fmt.Sprintf("%s port %d counted %s while %s", p.device, p.port.Number, amounts(changes, names, "+"), during), Bound: "none",
			Why: trouble(names[0]) + ": each time a call waits for a timer or for packets to be sent again", Mend: []string{watch(p), "ethtool -S " + p.netdev() + " | grep -Ei 'err|drop|discard|pause'      (pause frames or PFC on NIC and switch, or ECN; cable)"}})
	}
	return found
}

func troubles(counts map[string]int64) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 && trouble(name) != "" {
			names = append(names, name)
		}
	}
	return names
}

func amounts(counts map[string]int64, names []string, sign string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("%s %s%d", name, sign, counts[name]))
	}
	return strings.Join(list, ", ")
}

func watch(p place) string {
	return fmt.Sprintf("rdma statistic show link %s/%d      (again, and compare)", p.device, p.port.Number)
}

func noECN(e side) []doctor.Finding {
	var found []doctor.Finding
	for _, p := range e.ports() {
		if p.port.ECN == "off" {
			found = append(found, doctor.Finding{Code: "no-ecn", Severity: doctor.Note, Seen: p.netdev() + " has ECN for RoCE off for every priority", Bound: "on, where a switch is shared with other traffic",
				Why: "a switch that is full then drops packets, or pauses all of a port", Mend: []string{fmt.Sprintf("echo 1 > /sys/class/net/%s/ecn/roce_np/enable/3 && echo 1 > /sys/class/net/%s/ecn/roce_rp/enable/3      (the priority of the traffic class; and on the switch)", p.netdev(), p.netdev())}})
		}
	}
	return found
}

// firewall matters to software devices, whose packets pass it as UDP.
func firewall(e side) []doctor.Finding {
	if len(e.Firewalls) == 0 || !slices.ContainsFunc(e.Devices, func(d Device) bool { return d.Software }) {
		return nil
	}
	return one(doctor.Finding{Code: "firewall", Severity: doctor.Note, Seen: strings.Join(e.Firewalls, ", ") + " at work, and a software device's packets pass it", Bound: "UDP port 4791 open to the peers",
		Why: "RoCE v2 is UDP to that port", Mend: doctor.Pick(e.Firewalls, []string{"nft insert rule inet filter input udp dport 4791 accept", "ufw allow 4791/udp", "firewall-cmd --add-port=4791/udp"})})
}
