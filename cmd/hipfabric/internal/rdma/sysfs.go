package rdma

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hipfabric/hipfabric/verbs"
)

const (
	infiniband = "sys/class/infiniband"
	maxSlots   = 4096 // of a table, that are looked at
)

// kernelDevices are those that the kernel has, whatever libibverbs makes of them.
func (s *System) kernelDevices() []Device {
	list := []Device{}
	for _, name := range s.list(infiniband) {
		d := Device{Name: name, Ports: []Port{}, Firmware: s.line(infiniband, name, "fw_ver"), PCI: s.pci(name)}
		if kind := s.line(infiniband, name, "node_type"); kind != "" && !strings.HasPrefix(kind, "1:") {
			d.Foreign = true
		}
		if path, err := filepath.EvalSymlinks(s.path(infiniband, name, "device/driver")); err == nil {
			d.Driver = filepath.Base(path)
		}
		d.Software = d.PCI == nil && s.line(infiniband, name, "parent") != ""
		for _, number := range s.list(infiniband, name, "ports") {
			if n, err := strconv.Atoi(number); err == nil {
				d.Ports = append(d.Ports, s.kernelPort(name, n))
			}
		}
		slices.SortFunc(d.Ports, func(a, b Port) int { return a.Number - b.Number })
		list = append(list, d)
	}
	return list
}

func (s *System) kernelPort(device string, n int) Port {
	dir := filepath.Join(infiniband, device, "ports", strconv.Itoa(n))
	p := Port{Number: n, State: word(s.line(dir, "state")), Physical: physical(word(s.line(dir, "phys_state"))), Link: s.line(dir, "link_layer"), GIDs: []GID{}, Chosen: -1}
	if number, _, ok := strings.Cut(s.line(dir, "rate"), " "); ok { // "100 Gb/sec (4X EDR)"
		p.Gbps, _ = strconv.ParseFloat(number, 64)
	}
	for _, slot := range s.list(dir, "gid_attrs/types") {
		index, err := strconv.Atoi(slot)
		kind := s.line(dir, "gid_attrs/types", slot) // an empty slot's cannot be read
		if err != nil || kind == "" || len(p.GIDs) >= maxSlots {
			continue
		}
		if kind == "IB/RoCE v1" {
			if kind = "RoCE v1"; p.Link == "InfiniBand" {
				kind = "InfiniBand"
			}
		}
		p.GIDs = append(p.GIDs, GID{Index: index, Type: kind, GID: s.line(dir, "gids", slot), NetDev: s.line(dir, "gid_attrs/ndevs", slot)})
	}
	slices.SortFunc(p.GIDs, func(a, b GID) int { return a.Index - b.Index })
	p.NetDev = s.netdev(device, n, p.GIDs)
	p.ECN = s.ecn(p.NetDev)
	return p
}

// word is the text behind the number in "4: ACTIVE".
func word(text string) string {
	_, name, _ := strings.Cut(text, ": ")
	return strings.ToLower(name)
}

// physical has the kernel's names of physical states as words.
func physical(name string) string {
	if words := map[string]string{"linkup": "link up", "portconfigurationtraining": "training", "linkerrorrecovery": "error recovery", "phy test": "test"}[name]; words != "" {
		return words
	}
	return name
}

// netdev is the interface of a port: that of a software device, that of its GIDs, or that of its PCI function with its number.
func (s *System) netdev(device string, port int, gids []GID) string {
	if parent := s.line(infiniband, device, "parent"); parent != "" {
		return parent
	}
	for _, g := range gids {
		if g.NetDev != "" {
			return g.NetDev
		}
	}
	for _, name := range s.list(infiniband, device, "device/net") {
		number, err := strconv.Atoi(s.line(infiniband, device, "device/net", name, "dev_port"))
		if err != nil || number == port-1 {
			return name
		}
	}
	return ""
}

// ecn is what the drivers say that tell congestion notification in sysfs: "on" where any priority has it.
func (s *System) ecn(netdev string) string {
	if netdev == "" {
		return ""
	}
	told := ""
	for _, role := range []string{"roce_np", "roce_rp"} {
		dir := filepath.Join("sys/class/net", netdev, "ecn", role, "enable")
		for _, priority := range s.list(dir) {
			if s.line(dir, priority) == "1" {
				return "on"
			}
			told = "off"
		}
	}
	return told
}

// open adds what libibverbs says of a device that the kernel has.
func (d *Device) open(v *verbs.Device) {
	d.Listed, d.Foreign = true, d.Foreign || !v.IsChannelAdapter()
	c, err := v.Open()
	if err != nil {
		d.Failed, d.Cause = err.Error(), cause(err)
		return
	}
	defer func() { _ = c.Close() }() // nothing is left open in it
	d.Firmware = c.Attr().Firmware
	gids, err := c.GIDs()
	if err != nil {
		d.Failed, d.Cause = err.Error(), cause(err)
		return
	}
	for n := 1; n <= min(c.Attr().Ports, 255); n++ {
		attr, err := c.Port(n)
		if err != nil {
			d.Failed, d.Cause = err.Error(), cause(err)
			return
		}
		d.port(n).ask(attr, n, gids)
	}
}

// port is the device's of that number, made where the kernel told none.
func (d *Device) port(n int) *Port {
	for i := range d.Ports {
		if d.Ports[i].Number == n {
			return &d.Ports[i]
		}
	}
	d.Ports = append(d.Ports, Port{Number: n, Chosen: -1, GIDs: []GID{}})
	return &d.Ports[len(d.Ports)-1]
}

func (p *Port) ask(attr verbs.PortAttr, n int, table []verbs.GIDEntry) {
	p.State, p.Link, p.MTU, p.MaxMTU, p.Slots = attr.State.String(), attr.LinkLayer.String(), attr.ActiveMTU, attr.MaxMTU, attr.GIDs
	if names := []string{"", "sleep", "polling", "disabled", "training", "link up", "error recovery", "test"}; attr.PhysicalState > 0 && attr.PhysicalState < len(names) {
		p.Physical = names[attr.PhysicalState]
	}
	if rate := attr.Rate(); rate > 0 {
		p.Gbps = float64(rate/1e6) / 1e3
	}
	p.GIDs = []GID{}
	for _, e := range table {
		if e.Port != n || len(p.GIDs) >= maxSlots {
			continue
		}
		p.GIDs = append(p.GIDs, GID{Index: e.Index, Type: e.Type.String(), GID: e.GID.String(), NetDev: e.NetDev})
		if p.NetDev == "" {
			p.NetDev = e.NetDev
		}
	}
}
