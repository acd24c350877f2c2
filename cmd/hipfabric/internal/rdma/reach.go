package rdma

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
)

const (
	// A packet has headers besides its payload: UDP, BTH, RETH, an immediate and the ICRC.
	roceHeaders = 8 + 12 + 16 + 4 + 4
	headers4    = 20
	headers6    = 40

	answerWait = 400 * time.Millisecond
	attempts   = 3
)

// The fates of a packet that must not be fragmented.
const (
	Passes   = "passes"
	Lost     = "lost"           // though small ones pass
	TooLarge = "too large here" // for this host's interface, or for the way as it knows it
)

// reach finds the way to a peer, as far as this host alone can tell.
func reach(ctx context.Context, h *Host, peer string) Reach {
	r := Reach{Peer: peer}
	c, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(peer, closedPort))
	if err != nil {
		return r
	}
	from := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	to := c.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	_ = c.Close()
	r.From = from.WithZone("").String()
	if i := machine.Carries(h.Interfaces, r.From); i != nil {
		r.Interface = i.Name
		if !i.Loopback {
			r.Size = i.MTU
		}
	}
	r.over(h, to)
	r.Answers, r.Fits, r.PathMTU = packets(ctx, to, r.Size)
	r.Neighbour = neighbour(to)
	return r
}

// over finds the port that the way leaves by, and the size of its packets.
func (r *Reach) over(h *Host, to netip.Addr) {
	for _, p := range h.usable() {
		for _, g := range p.port.GIDs {
			if s := g.prefix(); g.rank() > linkLocal && s.IsValid() && s.Contains(to) && (r.Subnet == "" || p.port.NetDev == r.Interface) {
				r.Subnet = s.String()
			}
		}
		if p.port.NetDev != r.Interface || r.Interface == "" {
			continue
		}
		r.Device, r.Port = p.device, p.port.Number
		if p.port.MTU > 0 {
			r.Size = p.port.MTU + roceHeaders + headers(to)
		}
	}
}

func headers(a netip.Addr) int {
	if a.Is4() {
		return headers4
	}
	return headers6
}

// closedPort is one that nobody has open: the peer's system then says so, and the packet has come. It is where traceroute begins.
const closedPort = "33434"
