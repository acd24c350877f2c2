package doctor

import (
	"context"
	"net"
	"os"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

// look is what this host says of itself. Facts that it does not tell stay blank.
func look(ctx context.Context) Host {
	name, _ := os.Hostname()
	interfaces, _ := machine.Interfaces()
	return Host{Name: name, Facts: machine.Read(), Interfaces: interfaces, Firewalls: machine.Firewalls(ctx)}
}

// at notes which of the host's addresses and interfaces is the way's end.
func (h *Host) at(address net.Addr) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return
	}
	h.Address = tcp.AddrPort().Addr().Unmap().WithZone("").String()
	if i := machine.Carries(h.Interfaces, h.Address); i != nil {
		h.Interface = i.Name
	}
}

// changes is what the interface has counted since before.
func changes(name string, before map[string]int64) map[string]int64 {
	now := machine.Tally(name)
	for key, value := range now {
		now[key] = value - before[key]
	}
	return now
}

// route is the address from which this host would come to the peer; "" when there is no route. Nothing is sent.
func route(ctx context.Context, peer string) string {
	c, err := new(net.Dialer).DialContext(ctx, "udp", peer)
	if err != nil {
		return ""
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("").String()
}

// neighbour says whether an IPv4 host on the same link has answered to ARP.
func neighbour(table, address string) string {
	for text := range strings.Lines(table) {
		fields := strings.Fields(text) // address, hardware type, flags, ...
		if len(fields) < 3 || fields[0] != address {
			continue
		}
		if fields[2] == "0x0" {
			return "silent"
		}
		return "answers"
	}
	return ""
}
