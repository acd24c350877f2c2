package rail

import (
	"fmt"
	"net"
	"net/netip"
)

// List asks the system for this host's interfaces, those of the calling thread's network namespace.
func List() ([]Interface, error) {
	found, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list of network interfaces: %w", err)
	}
	all := make([]Interface, 0, len(found))
	for i := range found {
		f := &found[i]
		one := Interface{Name: f.Name, Index: f.Index, MTU: f.MTU, Up: f.Flags&net.FlagUp != 0, Running: f.Flags&net.FlagRunning != 0,
			Loopback: f.Flags&net.FlagLoopback != 0, PointToPoint: f.Flags&net.FlagPointToPoint != 0}
		addresses, err := f.Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok {
				one.Addresses = append(one.Addresses, prefixOf(n))
			}
		}
		all = append(all, one)
	}
	return all, kinds(all)
}

func prefixOf(n *net.IPNet) netip.Prefix {
	ip, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), ones)
}

// Look says why nothing can pass an interface of this host now; "" when there is no such reason to be seen.
func Look(name string) string {
	f, err := net.InterfaceByName(name)
	switch {
	case err != nil:
		return name + " is not there any more"
	case f.Flags&net.FlagUp == 0:
		return name + " is switched off; ip link set " + name + " up"
	case f.Flags&net.FlagRunning == 0:
		return name + " has no link: its cable is out or dead, or its far end is switched off"
	}
	return ""
}
