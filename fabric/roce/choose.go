package roce

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	maxPorts         = 16 // of a rank
	maxPortAddresses = 4  // of a port, in as many subnets
	maxDeviceName    = 63 // bytes
)

// endpoint is a port with one of its addresses: what a rail has at each end.
type endpoint struct {
	Device         string
	Port, GIDIndex int
	GID            [16]byte // of RoCE v2
	Prefix         int      // bits of Addr's subnet
	MTU            int      // active, bytes of payload a packet
	Rate           int64    // bits a second; 0: not known
}

// Addr is the GID as an IP address: IPv4 where it is mapped.
func (e *endpoint) Addr() netip.Addr { return netip.AddrFrom16(e.GID).Unmap() }

func (e *endpoint) subnet() netip.Prefix { return netip.PrefixFrom(e.Addr(), e.Prefix).Masked() }

func (e *endpoint) linkLocal() bool { return e.Addr().IsLinkLocalUnicast() }

// name is the port's, as HCAs has it.
func (e *endpoint) name() string { return portName(e.Device, e.Port) }

func (e *endpoint) String() string { return fmt.Sprintf("%s %v/%d", e.name(), e.Addr(), e.Prefix) }

// choice is what a rank has to offer, and why.
type choice struct {
	ends   []endpoint
	taken  []string // a reason each
	denied []string // alike, of ports that are not used
}

// choose takes of each port that the list picks the addresses that are worth most: of RoCE v2, one a subnet, by type and address whatever
// the index. IPv4 goes before IPv6; link-local ones are taken where the port has nothing else. Errors: ErrInvalid of the list,
// ErrUnsupported where no port is left.
func choose(ports []Port, list selection, addresses func(netdev string) ([]netip.Prefix, error)) (choice, error) {
	var c choice
	if len(ports) == 0 {
		return c, fabric.Unsupportedf("there is no RDMA port; see hipfabric doctor rdma")
	}
	chosen, left, err := list.pick(ports)
	if err != nil {
		return c, err
	}
	ask := remember(addresses)
	up, used := false, 0
	for i := range chosen {
		p := &chosen[i]
		name := p.name()
		if why := p.unusable(); why != "" {
			c.denied = append(c.denied, name+why)
			continue
		}
		up = true
		if used == maxPorts {
			c.denied = append(c.denied, fmt.Sprintf("%s is one too many: %d ports are used at most; choose by HCAs", name, maxPorts))
			continue
		}
		gids, err := p.candidates()
		if err != nil {
			return c, err
		}
		if len(gids) == 0 {
			c.denied = append(c.denied, fmt.Sprintf("%s has no GID of RoCE v2 with an IP address; it has %s", name, gidTable(p.port.GIDs)))
			continue
		}
		used++
		c.take(p, gids, ask)
	}
	if len(c.ends) == 0 && !up {
		return c, fabric.Unsupportedf("no port is active Ethernet: %s; bring a link up, or see hipfabric doctor rdma", listedIn(c.denied, "; ", maxListed))
	}
	if len(c.ends) == 0 {
		return c, fabric.Unsupportedf("no port has a usable GID: %s; give its interface an IP address", listedIn(c.denied, "; ", maxListed))
	}
	c.denied = append(c.denied, left...)
	return c, nil
}

// unusable says why nothing can go over the port, "" where it can.
func (p *picked) unusable() string {
	switch {
	case !p.port.Active:
		return ": " + p.port.State // which is why the device does not open, where it does not
	case !p.port.Ethernet:
		return " is InfiniBand, not Ethernet"
	case !validMTU(p.port.MTU):
		return fmt.Sprintf(" has an active MTU of %d bytes, which is none of RoCE's", p.port.MTU)
	case !nameable(p.port.Device) || p.port.Port < 1 || p.port.Port > maxPort:
		return " has a name that peers cannot be told"
	}
	return ""
}

func validMTU(bytes int) bool { return bytes >= 256 && bytes <= 4096 && bytes&(bytes-1) == 0 }

// worth ranks an address, the least first; the last is worth nothing.
func worth(a netip.Addr) int {
	switch {
	case a.IsUnspecified() || a.IsLoopback() || a.IsMulticast():
		return worthless
	case a.IsLinkLocalUnicast():
		return worthLittle
	case a.Is4():
		return 0
	default:
		return 1
	}
}

const worthLittle, worthless = 2, 3

// candidates are the port's GIDs to choose from, the best first, or those that are pinned. Errors: ErrInvalid of a pin.
func (p *picked) candidates() ([]GID, error) {
	if len(p.pins) > 0 {
		return p.pinned()
	}
	gids := slices.DeleteFunc(slices.Clone(p.port.GIDs), func(g GID) bool { return gidFault(g) != "" })
	slices.SortStableFunc(gids, func(a, b GID) int {
		if x, y := worth(ipOf(a)), worth(ipOf(b)); x != y {
			return x - y
		}
		return a.Index - b.Index
	})
	if len(gids) > 0 && worth(ipOf(gids[0])) < worthLittle {
		gids = slices.DeleteFunc(gids, func(g GID) bool { return worth(ipOf(g)) == worthLittle })
	}
	return gids, nil
}

func (p *picked) pinned() ([]GID, error) {
	var gids []GID
	for _, pin := range p.pins {
		i := slices.IndexFunc(p.port.GIDs, func(g GID) bool { return g.Index == pin.gid })
		if i < 0 {
			return nil, fabric.Invalidf("%s: %s has no GID %d; it has %s", pin.name(), p.name(), pin.gid, gidTable(p.port.GIDs))
		}
		if why := gidFault(p.port.GIDs[i]); why != "" {
			return nil, fabric.Invalidf("%s: GID %d of %s is %v, %s; RoCE v2 is needed; it has %s",
				pin.name(), pin.gid, p.name(), ipOf(p.port.GIDs[i]), why, gidTable(p.port.GIDs))
		}
		gids = append(gids, p.port.GIDs[i])
	}
	return gids, nil
}

func ipOf(g GID) netip.Addr { return netip.AddrFrom16(g.Addr).Unmap() }

// gidFault says why a GID cannot be used, "" where it can.
func gidFault(g GID) string {
	switch {
	case g.Version != 2:
		return gidVersion(g)
	case g.Index < 0 || g.Index > maxGIDIndex:
		return fmt.Sprintf("at index %d", g.Index)
	case worth(ipOf(g)) == worthless:
		return "no address of a host"
	}
	return ""
}

func gidVersion(g GID) string {
	if g.Version == 0 {
		return "InfiniBand"
	}
	return fmt.Sprintf("RoCE v%d", g.Version)
}

// gidTable is a port's GIDs, for messages.
func gidTable(gids []GID) string {
	var texts []string
	for _, g := range gids {
		texts = append(texts, fmt.Sprintf("%d %v (%s)", g.Index, ipOf(g), gidVersion(g)))
	}
	return listedIn(texts, ", ", maxListed/2)
}

// take offers a port by its candidates, one a subnet.
func (c *choice) take(p *picked, gids []GID, ask func(string) ([]netip.Prefix, error)) {
	seen := map[netip.Prefix]bool{}
	for _, g := range gids {
		e := endpoint{Device: p.port.Device, Port: p.port.Port, GIDIndex: g.Index, GID: g.Addr, MTU: p.port.MTU, Rate: max(p.port.Rate, 0)}
		bits, guess := prefixOf(ipOf(g), g.NetDev, ask)
		e.Prefix = bits
		if seen[e.subnet()] || len(seen) == maxPortAddresses {
			continue
		}
		seen[e.subnet()] = true
		c.ends = append(c.ends, e)
		c.taken = append(c.taken, fmt.Sprintf("%s by GID %d, one of %d, %s%s", &e, g.Index, len(p.port.GIDs), p.reason(g), guess))
	}
}

// reason says why a GID was chosen.
func (p *picked) reason(g GID) string {
	for _, pin := range p.pins {
		if pin.gid == g.Index {
			return "RoCE v2, as " + pin.name() + " says"
		}
	}
	return "RoCE v2, " + [...]string{"IPv4", "IPv6", "link-local: the port has nothing else"}[worth(ipOf(g))]
}
