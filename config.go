package hipfabric

import (
	"log/slog"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
	"github.com/hipfabric/hipfabric/fabric/roce"
	"github.com/hipfabric/hipfabric/fabric/tcp"
	"github.com/hipfabric/hipfabric/verbs"
)

// What a zero field of Config means.
const (
	DefaultTimeout      = fabric.DefaultTimeout
	DefaultOpenTimeout  = 5 * time.Minute
	DefaultHeartbeat    = 100 * time.Millisecond
	DefaultVerdictBusy  = time.Second
	DefaultVerdictIdle  = 5 * time.Second
	DefaultEagerBytes   = 32 << 10
	DefaultPartBytes    = 512 << 10
	DefaultMailboxBytes = roce.DefaultMailboxBytes
)

// NoTimeout, as Config.Timeout, lets a call wait for ever; the heartbeat and Abort still end it.
const NoTimeout = fabric.NoTimeout

// NoMailbox, as Config.MailboxBytes, has every call on device memory go through its proxy.
const NoMailbox = -1

// LanesAuto, as Config.Lanes, measures at Open how many connections a pair should have.
const LanesAuto = tcp.LanesAuto

// Config says which group to join, as which rank, and how. A zero field means the documented default. Fields marked
// (same) are compared between the ranks at Open: a difference is ErrMismatch on every rank.
type Config struct {
	Name        string // of the group; "default". Letters, digits and -_.:/ only, at most 64 (same)
	Rank, World int    // Rank 0 to World-1; World 1 to fabric.MaxWorld (World: same)
	LocalRank   int    // index among the ranks of this host, 0 to World-1; for the engine's choice of GPU

	// Master is rank 0's host:port, required when World > 1. The host is a name, an IPv4 or a bracketed IPv6 address,
	// zoned where link-local: "[fe80::1%eth0]:9000". "file:PATH" suits ranks that share one host: rank 0 listens on a
	// free loopback port and publishes it in PATH.
	Master string
	// Listen are the addresses to bind, each a host:port, port 0 for any. Default: rank 0 binds Master; others bind the
	// local address that reaches rank 0, and both those of their rails. Never all addresses.
	Listen []string
	// Rails choose the addresses that may be further ways to other hosts: a prefix of interfaces' names (eth), =exact
	// (=eth1) or a CIDR (10.0.0.0/8), each with ^ before it to exclude. Default: every subnet that both ends of a pair
	// share, but for loopback, link-local, bridges, tunnels and containers' interfaces. Ranks may differ.
	Rails []string
	// Lanes is how many connections a pair has, spread over its rails: 1 to 64, the smaller number of a pair's ends, at
	// least one a rail, and no more than the file descriptors allow. 0 is 1 within a host and 4 elsewhere; LanesAuto
	// measures 1, 2, 4 and 8 at Open, and takes a moment for it (LanesAuto: same).
	Lanes int
	// LaneCache is a file in which LanesAuto keeps its results, so that it measures a network once; "" measures it at
	// every Open.
	LaneCache string

	SecretFile string // a file with the group's secret, mode 0600, one trailing newline ignored; or Secret, not both
	Secret     []byte // 16 bytes or more. Without a secret a group stays on loopback, where it trusts every local user
	Insecure   bool   // no secret beyond loopback: anyone who reaches the port can join. Logged

	Timeout     time.Duration // of a call, without progress; 0 is 30 s, NoTimeout is none, else 10 ms to 24 h (same)
	OpenTimeout time.Duration // of Open as a whole; 0 is 5 min, else 10 ms to 24 h. The context may end it earlier
	Heartbeat   time.Duration // 0 is 100 ms, else 10 ms to 10 s; negative is off, for debuggers (same)
	VerdictBusy time.Duration // silence that fails a rank while a call waits on it; 0 is 1 s, else at least 3 heartbeats, at most 1 h (same)
	VerdictIdle time.Duration // silence that fails a rank otherwise; 0 is 5 s, else VerdictBusy to 1 h (same)

	// Paths are those that may be used, in order of wish: "tcp", "roce". The first one that every rank can use is, and Group.Paths says
	// why others are not. Default: tcp alone (same).
	Paths        []string
	EagerBytes   int           // calls up to this go out in one write with their header; 0 is 32 KiB, else 1 to 16 MiB (same)
	Window       int           // bytes in flight beyond what was received, while both directions move; 0 is a measured default, -1 is no bound, else 4 KiB to 1 GiB (same)
	PartBytes    int           // a call on device memory moves in parts of at most this many bytes; 0 is 512 KiB, else a multiple of 16, 16 to 64 MiB (same)
	SocketBuffer int           // bytes of each socket buffer; 0 lets the system grow them, else 4 KiB to 1 GiB
	SpinFor      time.Duration // how long a wait spins before it parks; 0 is a measured default, lowered when cores are short; at most 1 s
	Verify       bool          // CRC32C of every payload (same)

	// HCAs choose the ports of RoCE NICs: dev, dev:port or dev:port:gid; a device's name stands for all that begin so, with = before it for
	// that one, with ^ it is excluded. Default: all active ones. Ranks may differ.
	HCAs         []string
	TrafficClass int            // of RoCE's packets: DSCP times 4, plus ECN; 0 to 255. Lossless networks tell RoCE by it
	MailboxBytes int            // over roce, calls on device memory of up to this many bytes a rank are one kernel launch; 0 is 64 KiB, NoMailbox is none, else a multiple of 4096, at most 1 MiB (same)
	RDMA         *verbs.Library // libibverbs; nil opens the system's. verbstest has others

	StatusSocket string       // path of a Unix socket, mode 0600, that serves Status; "" is none
	Logger       *slog.Logger // nil is slog.Default()
}

// FromEnv fills a Config from the HIPFABRIC_* variables that `hipfabric run` sets; set further fields before Open. Its
// error is an ErrInvalid that names the variable; launch.ErrNone when none is set.
func FromEnv() (Config, error) {
	id, err := launch.Find()
	if err != nil {
		return Config{}, err
	}
	return Config{Name: id.Name, Rank: id.Rank, World: id.World, LocalRank: id.LocalRank, Master: id.Master, Listen: id.Listen,
		SecretFile: id.SecretFile, StatusSocket: id.StatusSocket}, nil
}

// withDefaults is c with every zero that stands for a value replaced by it.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = fabric.DefaultGroup
	}
	or := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	or(&c.Timeout, DefaultTimeout)
	or(&c.OpenTimeout, DefaultOpenTimeout)
	or(&c.Heartbeat, DefaultHeartbeat)
	or(&c.VerdictBusy, DefaultVerdictBusy)
	or(&c.VerdictIdle, max(DefaultVerdictIdle, c.VerdictBusy))
	if c.EagerBytes == 0 {
		c.EagerBytes = DefaultEagerBytes
	}
	if c.PartBytes == 0 {
		c.PartBytes = DefaultPartBytes
	}
	if c.MailboxBytes == 0 {
		c.MailboxBytes = DefaultMailboxBytes
	}
	if len(c.Paths) == 0 {
		c.Paths = []string{pathTCP}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}
