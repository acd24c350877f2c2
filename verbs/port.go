package verbs

import (
	"fmt"
	"math"
)

// PortState is a port's.
type PortState uint32

// The states of ports.
const (
	PortNoState PortState = 0
	PortDown    PortState = 1
	PortInit    PortState = 2
	PortArmed   PortState = 3
	PortActive  PortState = 4
	PortDefer   PortState = 5
)

// Implements: const char *ibv_port_state_str(enum ibv_port_state port_state)
func (s PortState) String() string {
	if names := [...]string{"no state", "down", "init", "armed", "active", "active, deferred"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("port state %d", uint32(s))
}

// LinkLayer is what a port's cable carries.
type LinkLayer uint32

// The link layers.
const (
	LinkUnspecified LinkLayer = 0
	LinkInfiniBand  LinkLayer = 1
	LinkEthernet    LinkLayer = 2
)

func (l LinkLayer) String() string {
	if names := [...]string{"unspecified", "InfiniBand", "Ethernet"}; int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("link layer %d", uint32(l))
}

// PortAttr is what a port is and can.
type PortAttr struct {
	State             PortState
	LinkLayer         LinkLayer
	MaxMTU, ActiveMTU int    // bytes of payload a packet
	MaxMessage        int    // bytes
	GIDs, PKeys       int    // slots of the tables
	LID               uint16 // InfiniBand's
	PhysicalState     int    // 3 disabled, 5 link up
	Width, Speed      uint32 // the header's numbers
}

// Rate is the link's in bits a second; 0 where its numbers are not known here.
func (p PortAttr) Rate() int64 {
	const mega = 1_000_000
	lanes := map[uint32]int64{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
	lane := map[uint32]int64{1: 2_500 * mega, 2: 5_000 * mega, 4: 10_000 * mega, 8: 10_000 * mega, 16: 14_063 * mega, 32: 25_781 * mega, 64: 50_000 * mega, 128: 100_000 * mega}
	return lanes[p.Width] * lane[p.Speed]
}

// Port asks for a port's attributes. Ports count from 1.
//
// Implements: int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr)
func (c *Context) Port(port int) (PortAttr, error) {
	if err := c.checkPort(port); err != nil {
		return PortAttr{}, err
	}
	if err := c.enter(); err != nil {
		return PortAttr{}, err
	}
	defer c.live.RUnlock()
	p, e := c.t.Port(c.h, port)
	if e != 0 {
		return PortAttr{}, fmt.Errorf("verbs: port %d: %w", port, c.fault("ibv_query_port", e))
	}
	return PortAttr{
		State: PortState(p.State), LinkLayer: LinkLayer(p.LinkLayer), MaxMTU: mtuBytes(p.MaxMTU), ActiveMTU: mtuBytes(p.ActiveMTU),
		MaxMessage: int(p.MaxMessage), GIDs: int(p.GIDs), PKeys: int(p.PKeys), LID: uint16(p.LID),
		PhysicalState: int(p.PhysicalState), Width: p.Width, Speed: p.Speed,
	}, nil
}

// PKey asks for a slot of a port's table of partition keys. 0xffff is the default partition; bit 15 says full member.
//
// Implements: int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
func (c *Context) PKey(port, index int) (uint16, error) {
	if err := c.checkPort(port); err != nil {
		return 0, err
	}
	if index < 0 || index > math.MaxUint16 {
		return 0, invalid("P_Key index %d of %s port %d: 0 to %d", index, c.device.d.Name, port, math.MaxUint16)
	}
	if err := c.enter(); err != nil {
		return 0, err
	}
	defer c.live.RUnlock()
	key, e := c.t.PKey(c.h, port, index)
	if e != 0 {
		return 0, fmt.Errorf("verbs: P_Key %d of port %d: %w", index, port, c.fault("ibv_query_pkey", e))
	}
	return key, nil
}

func (c *Context) checkPort(port int) error {
	if port < 1 || port > c.attr.Ports {
		return invalid("port %d of %s: it has %d, numbered from 1", port, c.device.d.Name, c.attr.Ports)
	}
	return nil
}

// mtuBytes is enum ibv_mtu's in bytes; 0 of none.
func mtuBytes(mtu uint32) int {
	if mtu < 1 || mtu > 5 {
		return 0
	}
	return 128 << mtu
}

// mtuNumber is the reverse; 0 of none.
func mtuNumber(bytes int) uint32 {
	for mtu := uint32(1); mtu <= 5; mtu++ {
		if mtuBytes(mtu) == bytes {
			return mtu
		}
	}
	return 0
}
