package verbs

import (
	"fmt"
	"net/netip"
)

// GID is a port's address; of RoCE it is an IP address.
type GID [16]byte

// Addr is the GID as an IP address: IPv4 where it is mapped.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsZero says that it is none.
func (g GID) IsZero() bool { return g == GID{} }

func (g GID) String() string { return netip.AddrFrom16(g).String() }

// GIDType says what carries a GID's packets.
type GIDType uint32

// The types of GIDs.
const (
	GIDInfiniBand GIDType = 0
	GIDRoCEv1     GIDType = 1 // Ethernet: no router passes it
	GIDRoCEv2     GIDType = 2 // UDP
)

func (t GIDType) String() string {
	switch t {
	case GIDInfiniBand:
		return "InfiniBand"
	case GIDRoCEv1:
		return "RoCE v1"
	case GIDRoCEv2:
		return "RoCE v2"
	}
	return fmt.Sprintf("GID type %d", uint32(t))
}

// GIDEntry is a slot of a port's table. The index of a GID changes while addresses come and go: find it by type and address.
type GIDEntry struct {
	GID         GID
	Port, Index int
	Type        GIDType
	NetDev      string // eth0; "" where there is none, or it is in another network namespace
	Interface   int    // its index, or 0
}

// GIDs gives the tables of all ports without their empty slots, by port and index.
//
// Implements: ssize_t ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
// uint32_t flags)
func (c *Context) GIDs() ([]GIDEntry, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.live.RUnlock()
	table, e := c.t.GIDs(c.h)
	if e != 0 {
		return nil, c.fault("ibv_query_gid_table", e)
	}
	all := make([]GIDEntry, len(table))
	for i, g := range table {
		all[i] = GIDEntry{GID: g.GID, Port: int(g.Port), Index: int(g.Index), Type: GIDType(g.Type), NetDev: g.NetDev, Interface: int(g.Interface)}
	}
	return all, nil
}
