//go:build linux

package netns

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"
)

// Net describes a cable or a switch. Without V4 and V6 its ports have their IPv6 link-local addresses only, which all have.
type Net struct {
	Number int // of the subnet, 0 to 255: 10.77.NUMBER.0/24 and fd00:0:0:NUMBER::/64; host i has address i+1 in it
	MTU    int // 0 is 1500
	V4, V6 bool
}

// Port is a host's end of a cable.
type Port struct {
	Host   *Host
	Device string
	MAC    string
	V4, V6 netip.Addr // zero where the net has none
	Link   netip.Addr // link-local, zoned

	far     *Host // the namespace of the cable's other end, and its device there
	farName string
}

// Cable joins two hosts directly.
func Cable(a, b *Host, n Net) (atA, atB *Port) {
	a.t.Helper()
	nameA, nameB := a.nextDevice(), b.nextDevice()
	a.veth(nameA, b, nameB, n)
	atA, atB = a.port(nameA, n), b.port(nameB, n)
	atA.far, atA.farName, atB.far, atB.farName = b, nameB, a, nameA
	settle(atA, atB)
	return atA, atB
}

// Switch joins hosts through a bridge on a host of its own, and gives each host's port, in order.
func Switch(hosts []*Host, n Net) []*Port {
	t := hosts[0].t
	t.Helper()
	bridge := newHost(t, -1)
	bridge.ip("link", "add", "switch", "mtu", fmt.Sprint(n.mtu()), "type", "bridge", "stp_state", "0")
	bridge.ip("link", "set", "switch", "up")
	ports := attach(hosts, bridge, n)
	for _, p := range ports {
		bridge.ip("link", "set", p.farName, "master", "switch")
	}
	return ports
}

// attach gives each host a cable to another one, which has no address of its own.
func attach(hosts []*Host, middle *Host, n Net) []*Port {
	middle.t.Helper()
	ports := make([]*Port, len(hosts))
	for i, h := range hosts {
		near, far := h.nextDevice(), middle.nextDevice()
		h.veth(near, middle, far, n)
		middle.ip("link", "set", far, "up")
		ports[i] = h.port(near, n)
		ports[i].far, ports[i].farName = middle, far
	}
	settle(ports...)
	return ports
}

func (n Net) mtu() int {
	if n.MTU == 0 {
		return 1500
	}
	return n.MTU
}

func (h *Host) nextDevice() string {
	h.ports++
	return fmt.Sprintf("cable%d", h.ports)
}

func (h *Host) veth(near string, other *Host, far string, n Net) {
	h.t.Helper()
	mtu := fmt.Sprint(n.mtu())
	h.ip("link", "add", near, "mtu", mtu, "type", "veth", "peer", "name", far, "mtu", mtu, "netns", other.Name)
}

// port gives a device its addresses and brings it up.
func (h *Host) port(device string, n Net) *Port {
	h.t.Helper()
	p := &Port{Host: h, Device: device}
	if n.V4 {
		p.V4 = netip.AddrFrom4([4]byte{10, 77, byte(n.Number), byte(h.Index + 1)})
		h.ip("addr", "add", p.V4.String()+"/24", "dev", device)
	}
	if n.V6 {
		p.V6 = netip.AddrFrom16([16]byte{0: 0xfd, 7: byte(n.Number), 15: byte(h.Index + 1)})
		h.ip("addr", "add", p.V6.String()+"/64", "dev", device, "nodad")
	}
	h.ip("link", "set", device, "up")
	return p
}

// settle waits until ports carry and the kernel has given them their link-local addresses.
func settle(ports ...*Port) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(toolLimit)
	for _, p := range ports {
		for !p.ready() {
			select {
			case <-tick.C:
			case <-late:
				p.Host.t.Fatalf("%s: %s is not up after %v", p.Host.Name, p.Device, toolLimit)
			}
		}
	}
}

// ready asks the kernel for what it has chosen, and whether it is in force.
func (p *Port) ready() bool {
	p.Host.t.Helper()
	var devices []struct {
		State   string `json:"operstate"`
		Address string `json:"address"`
		Info    []struct {
			Local netip.Addr `json:"local"`
			Scope string     `json:"scope"`
		} `json:"addr_info"`
	}
	out := p.Host.ip("-j", "addr", "show", "dev", p.Device)
	if err := json.Unmarshal([]byte(out), &devices); err != nil || len(devices) != 1 {
		p.Host.t.Fatalf("%s: addresses of %s: %v: %s", p.Host.Name, p.Device, err, out)
	}
	p.MAC = devices[0].Address
	for _, a := range devices[0].Info {
		if a.Scope == "link" && a.Local.Is6() {
			p.Link = a.Local.WithZone(p.Device)
		}
	}
	return p.Link.IsValid() && devices[0].State == "UP"
}

// Addr is the port's best address: V4, else V6, else the link-local one.
func (p *Port) Addr() netip.Addr {
	for _, a := range []netip.Addr{p.V4, p.V6} {
		if a.IsValid() {
			return a
		}
	}
	return p.Link
}

// Pull takes the link down at its far end, so that this host sees its carrier go; Plug puts it back.
func (p *Port) Pull() { p.far.ip("link", "set", p.farName, "down") }

// Plug undoes Pull.
func (p *Port) Plug() { p.far.ip("link", "set", p.farName, "up") }

// Mute loses all that this port sends to another one, as a broken fibre would: the way back still works. Unmute undoes it.
func (p *Port) Mute(to *Port) { p.neighbour(to, "02:00:00:00:00:01") }

// Unmute undoes Mute.
func (p *Port) Unmute(to *Port) { p.neighbour(to, to.MAC) }

// neighbour fixes to which station this host sends what is for another port.
func (p *Port) neighbour(to *Port, station string) {
	p.Host.t.Helper()
	for _, a := range []netip.Addr{to.V4, to.V6, to.Link.WithZone("")} {
		if a.IsValid() {
			p.Host.ip("neigh", "replace", a.String(), "lladdr", station, "dev", p.Device, "nud", "permanent")
		}
	}
}

// Sent is how many bytes have left this port, headers and resent ones included.
func (p *Port) Sent() uint64 {
	p.Host.t.Helper()
	var devices []struct {
		Stats struct {
			Sent struct {
				Bytes uint64 `json:"bytes"`
			} `json:"tx"`
		} `json:"stats64"`
	}
	out := p.Host.ip("-j", "-s", "link", "show", "dev", p.Device)
	if err := json.Unmarshal([]byte(out), &devices); err != nil || len(devices) != 1 {
		p.Host.t.Fatalf("%s: counters of %s: %v: %s", p.Host.Name, p.Device, err, out)
	}
	return devices[0].Stats.Sent.Bytes
}
