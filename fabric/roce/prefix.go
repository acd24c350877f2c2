package roce

import (
	"fmt"
	"net"
	"net/netip"
)

// prefixOf is the length of an address's prefix as the interface has it, or else what such addresses mostly have, and why.
func prefixOf(a netip.Addr, netdev string, ask func(string) ([]netip.Prefix, error)) (bits int, guess string) {
	usual := 64
	if a.Is4() {
		usual = 24
	}
	if a.IsLinkLocalUnicast() {
		if a.Is4() {
			usual = 16
		}
		return usual, ""
	}
	if netdev == "" {
		return usual, fmt.Sprintf("; /%d is a guess: it names no interface here", usual)
	}
	prefixes, err := ask(netdev)
	if err != nil {
		return usual, fmt.Sprintf("; /%d is a guess: %v", usual, err)
	}
	for _, p := range prefixes {
		if p.IsValid() && p.Addr().Unmap().WithZone("") == a {
			if p.Addr().Is4In6() {
				return max(p.Bits()-96, 0), ""
			}
			return p.Bits(), ""
		}
	}
	return usual, fmt.Sprintf("; /%d is a guess: %s has no such address here", usual, netdev)
}

// remember asks once for each interface.
func remember(addresses func(string) ([]netip.Prefix, error)) func(string) ([]netip.Prefix, error) {
	type answer struct {
		prefixes []netip.Prefix
		err      error
	}
	known := map[string]answer{}
	return func(netdev string) ([]netip.Prefix, error) {
		a, there := known[netdev]
		if !there {
			a.prefixes, a.err = addresses(netdev)
			known[netdev] = a
		}
		return a.prefixes, a.err
	}
}

// systemAddresses asks for an interface's addresses, in the network namespace of the calling thread.
func systemAddresses(netdev string) ([]netip.Prefix, error) {
	f, err := net.InterfaceByName(netdev)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", netdev, err)
	}
	found, err := f.Addrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of interface %s: %w", netdev, err)
	}
	var prefixes []netip.Prefix
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			ip, _ := netip.AddrFromSlice(n.IP)
			ones, _ := n.Mask.Size()
			prefixes = append(prefixes, netip.PrefixFrom(ip.Unmap(), ones))
		}
	}
	return prefixes, nil
}
