package bootstrap

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/rail"
)

// The defaults and bounds of Config.
const (
	DefaultOpenTimeout = 5 * time.Minute
	DefaultHeartbeat   = 100 * time.Millisecond
	DefaultVerdictBusy = time.Second
	DefaultVerdictIdle = 5 * time.Second
	MinSecret          = 16 // bytes

	maxName     = 64 // bytes of a group's or setting's name
	maxValue    = 256
	maxSettings = 64
	maxListen   = 16 // addresses of a rank, those of its rails included
	filePrefix  = "file:"
)

// Config is what Join needs. All ranks give the same values but for Rank, Listen, Rails and Logger.
type Config struct {
	Group       string // its name, at most 64 bytes; "" is fabric.DefaultGroup
	Rank, World int    // 0 <= Rank < World <= fabric.MaxWorld

	// Master is rank 0's host:port: a name, IPv4, [IPv6] or zoned [fe80::1%eth0] host. With file:PATH rank 0 listens
	// on a free loopback port and publishes its address in PATH, which the others read. Not needed for World 1.
	Master string
	// Listen are the addresses that this rank binds, port 0 for any. Default: for rank 0 Master's, for the others the
	// local address of the connection that reached rank 0; and those that Rails allow. Never all addresses.
	Listen []string
	// Rails choose the addresses that may be further ways between hosts: prefix of interfaces' names (eth), =exact
	// (=eth1) or CIDR (10.0.0.0/8), each with ^ before it to exclude. Default: every subnet that both ends of a pair
	// share, but for loopback, link-local, bridges, tunnels and the interfaces of containers, which only their name
	// includes. They may differ between ranks. Beyond loopback, and without Listen, a rank listens on all of them.
	Rails []string

	Secret   []byte // at least 16 bytes, the same on all ranks; none means loopback only
	Insecure bool   // no secret beyond loopback: anyone who reaches the port can join

	OpenTimeout time.Duration // how long Join may take; 0 is 5 minutes; its context may end it earlier
	Heartbeat   time.Duration // between signs of life; 0 is 100 ms, negative turns verdicts on silence off
	VerdictBusy time.Duration // silence that fails a rank while a call waits for it; 0 is 1 s
	VerdictIdle time.Duration // silence that fails a rank otherwise; 0 is 5 s

	Settings []Setting    // compared by Join; a difference is ErrMismatch on every rank
	Logger   *slog.Logger // nil discards

	version uint16                                                       // of the wire; tests set another
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error) // nil is the system's resolver
	list    func() ([]rail.Interface, error)                             // nil asks the system
	ways    func(places []place, me, peer int) []way                     // nil draws them from the table
	// background runs what dials without a caller; nil does nothing but call it.
	background func(func())
}

// Setting is a named value that all ranks must share.
type Setting struct{ Name, Value string }

// Validate names the first field that is out of its bounds, as an ErrInvalid. What needs a resolver, such as the rule
// that a group without a secret stays on loopback, is checked by Join.
func (c *Config) Validate() error {
	d := c.withDefaults()
	switch {
	case len(d.Group) > maxName:
		return fabric.Invalidf("Group has %d bytes; at most %d are allowed", len(d.Group), maxName)
	case d.World < 1 || d.World > fabric.MaxWorld:
		return fabric.Invalidf("World is %d; 1 to %d ranks are allowed", d.World, fabric.MaxWorld)
	case d.Rank < 0 || d.Rank >= d.World:
		return fabric.Invalidf("Rank is %d; world %d needs 0 to %d", d.Rank, d.World, d.World-1)
	case len(d.Secret) > 0 && len(d.Secret) < MinSecret:
		return fabric.Invalidf("the secret has %d bytes; at least %d are needed: hipfabric keygen makes one", len(d.Secret), MinSecret)
	case d.OpenTimeout < 0:
		return fabric.Invalidf("OpenTimeout is %v; 0 (%v) or more is needed", d.OpenTimeout, DefaultOpenTimeout)
	}
	if err := d.validateTimes(); err != nil {
		return err
	}
	if err := d.validateAddresses(); err != nil {
		return err
	}
	if _, err := rail.Parse("Rails", d.Rails); err != nil {
		return err
	}
	return validateSettings(d.Settings)
}

func (c *Config) validateTimes() error {
	if c.Heartbeat < 0 {
		return nil
	}
	switch {
	case c.Heartbeat < time.Millisecond || c.Heartbeat > time.Minute:
		return fabric.Invalidf("Heartbeat is %v; 1ms to 1m is allowed, negative is off", c.Heartbeat)
	case c.VerdictBusy < 2*c.Heartbeat:
		return fabric.Invalidf("VerdictBusy is %v; at least twice Heartbeat, %v, is needed", c.VerdictBusy, 2*c.Heartbeat)
	case c.VerdictIdle < c.VerdictBusy:
		return fabric.Invalidf("VerdictIdle is %v; at least VerdictBusy, %v, is needed", c.VerdictIdle, c.VerdictBusy)
	}
	return nil
}

func (c *Config) validateAddresses() error {
	if c.World == 1 {
		return nil
	}
	if c.Master == "" {
		return fabric.Invalidf("Master is empty; world %d needs rank 0's host:port (HIPFABRIC_MASTER), or file:PATH for ranks of one host", c.World)
	}
	if path, ok := strings.CutPrefix(c.Master, filePrefix); ok {
		if path == "" {
			return fabric.Invalidf("Master is %q; file:PATH needs a path", c.Master)
		}
	} else if err := checkAddress("Master", c.Master, false); err != nil {
		return err
	}
	if len(c.Listen) > maxListen {
		return fabric.Invalidf("Listen has %d addresses; at most %d are allowed", len(c.Listen), maxListen)
	}
	for _, a := range c.Listen {
		if err := checkAddress("Listen", a, true); err != nil {
			return err
		}
	}
	return nil
}

// checkAddress refuses what no resolver is needed to refuse.
func checkAddress(field, address string, anyPort bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fabric.Invalidf("%s is %q: %v; host:port is needed, an IPv6 host in brackets", field, address, err)
	}
	n, err := net.LookupPort("tcp", port)
	switch {
	case port == "" || err != nil:
		return fabric.Invalidf("%s is %q; a port of 1 to 65535 is needed", field, address)
	case n == 0 && !anyPort:
		return fabric.Invalidf("%s is %q: the others could not find port 0; give a port, or file:PATH for ranks of one host", field, address)
	case host == "":
		return fabric.Invalidf("%s is %q: it names no host, which would bind every address; name the one that the others reach", field, address)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return fabric.Invalidf("%s is %q, which would bind every address; name the one that the others reach", field, address)
	}
	return nil
}

func validateSettings(settings []Setting) error {
	if len(settings) > maxSettings {
		return fabric.Invalidf("there are %d settings; at most %d are allowed", len(settings), maxSettings)
	}
	for _, s := range settings {
		if s.Name == "" || len(s.Name) > maxName || len(s.Value) > maxValue {
			return fabric.Invalidf("setting %.64q has a name of %d and a value of %d bytes; 1 to %d and at most %d are allowed",
				s.Name, len(s.Name), len(s.Value), maxName, maxValue)
		}
	}
	return nil
}

func (c *Config) withDefaults() Config {
	d := *c
	if d.Group == "" {
		d.Group = fabric.DefaultGroup
	}
	if d.OpenTimeout == 0 {
		d.OpenTimeout = DefaultOpenTimeout
	}
	if d.Heartbeat == 0 {
		d.Heartbeat = DefaultHeartbeat
	}
	if d.VerdictBusy == 0 {
		d.VerdictBusy = DefaultVerdictBusy
	}
	if d.VerdictIdle == 0 {
		d.VerdictIdle = max(DefaultVerdictIdle, d.VerdictBusy)
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.lookup == nil {
		d.lookup = lookup
	}
	if d.list == nil {
		d.list = rail.List
	}
	if d.ways == nil {
		d.ways = waysTo
	}
	if d.background == nil {
		d.background = func(f func()) { f() }
	}
	if d.version == 0 {
		d.version = wireVersion
	}
	return d
}

// compared are the settings that Join compares: the caller's, and those that the group's verdicts rest on.
func (c *Config) compared() []Setting {
	return append([]Setting{
		{"Heartbeat", max(c.Heartbeat, -1).String()},
		{"VerdictBusy", c.VerdictBusy.String()},
		{"VerdictIdle", c.VerdictIdle.String()},
	}, c.Settings...)
}
