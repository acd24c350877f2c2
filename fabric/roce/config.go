package roce

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Defaults and bounds of Config.
const (
	MaxDevices        = 32
	MaxStripes        = 8         // lanes a pair
	DefaultEagerBytes = 32 << 10  // bytes
	DefaultSlotBytes  = 64 << 10  // bytes
	MaxSlotBytes      = 16 << 20  // bytes
	DefaultSlots      = 8         // of a ring
	MinSlots          = 4         // of a ring
	MaxSlots          = 1024      // of a ring
	MaxRingBytes      = 256 << 20 // bytes: Slots times SlotBytes. A lane has such a ring and as much staging at each end
	MaxTrafficClass   = 255
	DefaultRetries    = 6
	MaxRetries        = 6
	MaxPacketTimeout  = packetTick << 21 // 8.6 s
	DefaultSpinFor    = time.Millisecond

	packetTick    = 4096 * time.Nanosecond // a device waits this times a power of two
	packetDefault = packetTick << 14       // 67 ms
	packetLeast   = packetTick << 8        // 1 ms: below it, a peer's late acknowledgement is taken for a loss
	maxChannel    = 64                     // bytes
)

// Order says how a receiver learns that a frame is in place.
type Order uint8

// The orders. OrderFlags relies on devices that place what a queue pair writes in order; OrderImmediate on nothing, and costs a
// completion a frame.
const (
	OrderAuto      Order = iota // by what each device says of itself; flags where it says nothing
	OrderFlags                  // a word that is written behind the frame
	OrderImmediate              // the completion of a receive
)

func (o Order) String() string {
	if names := [...]string{"auto", "flags", "immediate"}; int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("order %d", uint8(o))
}

// Config says how a Transport moves bytes. All ranks of a group need the same Group, Channel, Stripes, EagerBytes, SlotBytes, Slots,
// Order and Verify: Open compares all but the Group, which the bootstrap does.
type Config struct {
	Group   string // name
	Channel string // "host", at most 64 bytes; channels of a group have queue pairs of their own
	// HCAs chooses HCAs, their ports, and in an emergency their GIDs: dev, dev:port or dev:port:gid. mlx5 stands for all devices that
	// begin so, =mlx5_1 for that one; ^ before it excludes, a device or a port. Where some choose, their order is that of the rails in a
	// subnet of several ports. A GID's index changes with the host's addresses, so one that is given here is checked. At most MaxDevices;
	// none: all devices.
	HCAs []string
	// Stripes is the lanes of a pair, at most MaxStripes; 0 is one a rail. Fewer than rails leave rails idle, more put several on a rail.
	// A relayed pair has at least one through each neighbour.
	Stripes int
	// EagerBytes is the size up to which a span is one frame, at most SlotBytes; 0 is DefaultEagerBytes, or SlotBytes where that is less.
	EagerBytes int
	// SlotBytes is the payload of a slot, and of a part of a larger span, a multiple of 64, at most MaxSlotBytes; 0 is DefaultSlotBytes, or EagerBytes where that is more.
	SlotBytes int
	// Slots is how many a ring has, a power of two from MinSlots to MaxSlots: so many frames may be on their way on a lane. 0 is
	// DefaultSlots. Slots times SlotBytes is at most MaxRingBytes.
	Slots int
	// TrafficClass goes into the IP header of every packet: DSCP times 4, plus ECN. Lossless networks tell RoCE by it.
	TrafficClass int
	// Retries is how often a packet is sent again before its queue pair fails, at most MaxRetries; 0 is DefaultRetries. Seven is refused:
	// some devices take it for ever, and a peer's death would not be seen.
	Retries int
	// PacketTimeout is how long a packet may go unacknowledged, at most MaxPacketTimeout; devices wait up to four times as long. 0 is 67 ms,
	// or less where so many tries would not end well within Timeout.
	PacketTimeout time.Duration
	Timeout       time.Duration // the group's, without progress; 0 is fabric.DefaultTimeout, fabric.NoTimeout is none
	SpinFor       time.Duration // polling after the last progress before a wait parks; 0 is DefaultSpinFor, negative none
	Yield         bool          // more ranks spin on this machine than it has cores
	Verify        bool          // CRC32C of every frame
	CPUs          []int         // where the transport's own thread may run, inside the allowed mask; none: anywhere
	Order         Order
	// Addresses gives an interface's addresses with their prefix lengths; nil asks the system. Give wider prefixes than the system's where
	// routers join the subnets of RoCE ports: ports are joined by subnet. Open calls it, and nothing else does.
	Addresses func(netdev string) ([]netip.Prefix, error)
	// Failed is told of a failure that no call of this rank's may come across, from another goroutine; nil where nobody wants to know.
	Failed func(cause error)
	Logger *slog.Logger // nil is slog.Default()

	more []setting // a Mailbox's, which all ranks must have alike too
}

// Validate names the first setting that is out of range.
func (c *Config) Validate() error {
	if len(c.Channel) > maxChannel {
		return fabric.Invalidf("Channel has %d bytes; at most %d are allowed", len(c.Channel), maxChannel)
	}
	if _, err := parseDevices(c.HCAs); err != nil {
		return err
	}
	if c.Stripes < 0 || c.Stripes > MaxStripes {
		return fabric.Invalidf("Stripes is %d; 1 to %d, or 0 for one a rail", c.Stripes, MaxStripes)
	}
	if err := c.validateSizes(); err != nil {
		return err
	}
	if c.TrafficClass < 0 || c.TrafficClass > MaxTrafficClass {
		return fabric.Invalidf("TrafficClass is %d; 0 to %d: DSCP times 4, plus ECN", c.TrafficClass, MaxTrafficClass)
	}
	for i, cpu := range c.CPUs {
		if cpu < 0 {
			return fabric.Invalidf("CPUs[%d] is %d; CPUs are numbered from 0", i, cpu)
		}
	}
	if c.Order > OrderImmediate {
		return fabric.Invalidf("Order is %d; %d (%v), %d (%v) or %d (%v)", uint8(c.Order), OrderAuto, OrderAuto, OrderFlags, OrderFlags, OrderImmediate, OrderImmediate)
	}
	return c.validateTimes()
}

func (c *Config) validateSizes() error {
	d := c.withDefaults()
	if c.SlotBytes < 0 || c.SlotBytes > MaxSlotBytes || c.SlotBytes%64 != 0 {
		return fabric.Invalidf("SlotBytes is %d; a multiple of 64, at most %d, or 0 for %d", c.SlotBytes, MaxSlotBytes, DefaultSlotBytes)
	}
	if c.EagerBytes < 0 || c.EagerBytes > MaxSlotBytes {
		return fabric.Invalidf("EagerBytes is %d, outside 0..%d; 0 is %d", c.EagerBytes, MaxSlotBytes, DefaultEagerBytes)
	}
	if c.EagerBytes > d.SlotBytes {
		return fabric.Invalidf("EagerBytes is %d, more than SlotBytes, %d: an eager span is one frame", c.EagerBytes, d.SlotBytes)
	}
	if n := c.Slots; n != 0 && (n < MinSlots || n > MaxSlots || n&(n-1) != 0) {
		return fabric.Invalidf("Slots is %d; a power of two from %d to %d, or 0 for %d", n, MinSlots, MaxSlots, DefaultSlots)
	}
	if n := d.Slots * d.SlotBytes; n > MaxRingBytes {
		return fabric.Invalidf("Slots is %d and SlotBytes %d, together %d bytes a ring; at most %d", d.Slots, d.SlotBytes, n, MaxRingBytes)
	}
	return nil
}

func (c *Config) validateTimes() error {
	switch {
	case c.Retries == 7:
		return fabric.Invalidf("Retries is 7, which some devices take for ever, so that a peer's death is not seen; at most %d, or 0 for %d", MaxRetries, DefaultRetries)
	case c.Retries < 0 || c.Retries > MaxRetries:
		return fabric.Invalidf("Retries is %d; 1 to %d, or 0 for %d", c.Retries, MaxRetries, DefaultRetries)
	case c.Timeout < 0 && c.Timeout != fabric.NoTimeout:
		return fabric.Invalidf("Timeout is %v; a positive one, 0 for %v, or %d for none", c.Timeout, fabric.DefaultTimeout, fabric.NoTimeout)
	case c.PacketTimeout < 0 || c.PacketTimeout > MaxPacketTimeout:
		return fabric.Invalidf("PacketTimeout is %v; at most %v, or 0 for what suits Timeout", c.PacketTimeout, MaxPacketTimeout)
	}
	d := c.withDefaults()
	if tries := time.Duration(d.Retries + 1); c.PacketTimeout > 0 && d.Timeout > 0 && tries*c.PacketTimeout > d.Timeout {
		return fabric.Invalidf("PacketTimeout is %v, and %d tries of it exceed Timeout, %v; at most %v, or 0 for what suits it",
			c.PacketTimeout, tries, d.Timeout, d.Timeout/tries)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Channel = cmp.Or(c.Channel, "host")
	c.SlotBytes = cmp.Or(c.SlotBytes, max(DefaultSlotBytes, (c.EagerBytes+63)/64*64))
	c.EagerBytes = cmp.Or(c.EagerBytes, min(DefaultEagerBytes, c.SlotBytes))
	c.Slots = cmp.Or(c.Slots, DefaultSlots)
	c.Retries = cmp.Or(c.Retries, DefaultRetries)
	c.Timeout = cmp.Or(c.Timeout, fabric.DefaultTimeout)
	c.PacketTimeout = cmp.Or(c.PacketTimeout, packetTimeout(c.Timeout, c.Retries+1))
	c.SpinFor = max(cmp.Or(c.SpinFor, DefaultSpinFor), 0)
	if c.Addresses == nil {
		c.Addresses = systemAddresses
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// packetTimeout is the longest that devices have, up to packetDefault, of which so many tries, each waited for four times as long, take at
// most half of the timeout.
func packetTimeout(timeout time.Duration, tries int) time.Duration {
	t := packetDefault
	for timeout > 0 && t > packetLeast && 8*time.Duration(tries)*t > timeout {
		t /= 2
	}
	return t
}

// setting is a value that all ranks must have alike.
type setting struct{ name, value string }

// settings are those of a Config with defaults.
func (c *Config) settings() []setting {
	number := strconv.Itoa
	return append([]setting{
		{"Channel", c.Channel}, {"Stripes", number(c.Stripes)}, {"EagerBytes", number(c.EagerBytes)}, {"SlotBytes", number(c.SlotBytes)},
		{"Slots", number(c.Slots)}, {"Order", c.Order.String()}, {"Verify", strconv.FormatBool(c.Verify)},
	}, c.more...)
}
