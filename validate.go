package hipfabric

import (
	"slices"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/roce"
	"github.com/hipfabric/hipfabric/fabric/tcp"
)

const (
	minWait, maxWait           = 10 * time.Millisecond, 24 * time.Hour
	minHeartbeat, maxHeartbeat = 10 * time.Millisecond, 10 * time.Second
	heartbeatsToVerdict        = 3
	maxVerdict                 = time.Hour
	maxSpin                    = time.Second
	maxEager                   = 16 << 20
	minWindow, maxWindow       = 4 << 10, 1 << 30
	maxName                    = 64
	minSecret                  = 16
	partGrain, maxPart         = 16, 64 << 20
	mailboxGrain               = 4096
	maxSocketPath              = 90 // what sockaddr_un holds on every system, less the suffix of its temporary name
)

// Validate says what is wrong with c, defaults applied: an ErrInvalid that names the field, its value, its bound and
// what to do. It reads no file and resolves no name; Open calls it.
func (c *Config) Validate() error {
	v := c.withDefaults()
	if err := v.validateAlone(); err != nil {
		return err
	}
	return parts(&v)
}

// validateAlone checks what this rank can refuse by itself; c is complete.
func (c *Config) validateAlone() error {
	for _, check := range []func(*Config) error{naming, secrets, times, tuning, membership, place} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// parts is checked once the ranks have compared it: the others would wait for a rank that refused it alone.
func parts(c *Config) error {
	if n := c.MailboxBytes; n != NoMailbox && (n < 0 || n > roce.MaxMailboxBytes || n%mailboxGrain != 0) {
		return fabric.Invalidf("MailboxBytes is %d; a multiple of %d, at most %d, is needed, or 0 for %d, or %d for no mailbox", n, mailboxGrain, roce.MaxMailboxBytes,
			DefaultMailboxBytes, NoMailbox)
	}
	if c.PartBytes < partGrain || c.PartBytes > maxPart || c.PartBytes%partGrain != 0 {
		return fabric.Invalidf("PartBytes is %d; a multiple of %d, %d to %d, is needed, or 0 for %d", c.PartBytes, partGrain, partGrain, maxPart, DefaultPartBytes)
	}
	return nil
}

func naming(c *Config) error {
	if len(c.Name) > maxName || strings.ContainsFunc(c.Name, notInNames) {
		return fabric.Invalidf("Name is %q; use 1 to %d letters, digits and -_.:/", c.Name, maxName)
	}
	return nil
}

// membership leaves Rank, World, Master and Listen to the package that uses them.
func membership(c *Config) error {
	b := bootstrapConfig(c)
	return b.Validate()
}

func place(c *Config) error {
	if c.LocalRank < 0 || c.LocalRank >= c.World {
		return fabric.Invalidf("LocalRank is %d; World %d allows 0 to %d", c.LocalRank, c.World, c.World-1)
	}
	if len(c.StatusSocket) > maxSocketPath {
		return fabric.Invalidf("StatusSocket %q has %d bytes; a Unix socket's path may have %d", c.StatusSocket, len(c.StatusSocket), maxSocketPath)
	}
	return nil
}

func notInNames(r rune) bool {
	letter := (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9')
	return !letter && !strings.ContainsRune("-_.:/", r)
}

func secrets(c *Config) error {
	switch {
	case c.SecretFile != "" && len(c.Secret) > 0:
		return fabric.Invalidf("Secret and SecretFile (%s) are both given; keep one", c.SecretFile)
	case len(c.Secret) > 0 && len(c.Secret) < minSecret:
		return fabric.Invalidf("Secret has %d bytes; at least %d are needed (`hipfabric keygen` makes one)", len(c.Secret), minSecret)
	default:
		return nil
	}
}

func times(c *Config) error {
	if c.Timeout != NoTimeout {
		if err := between("Timeout", c.Timeout, minWait, maxWait, "; NoTimeout is none"); err != nil {
			return err
		}
	}
	if err := between("OpenTimeout", c.OpenTimeout, minWait, maxWait, ""); err != nil {
		return err
	}
	beats := minHeartbeat
	if c.Heartbeat > 0 {
		if err := between("Heartbeat", c.Heartbeat, minHeartbeat, maxHeartbeat, "; a negative one is off"); err != nil {
			return err
		}
		beats = c.Heartbeat
	}
	if err := between("VerdictBusy", c.VerdictBusy, heartbeatsToVerdict*beats, maxVerdict, ", the lower bound being 3 heartbeats"); err != nil {
		return err
	}
	return between("VerdictIdle", c.VerdictIdle, c.VerdictBusy, maxVerdict, ", the lower bound being VerdictBusy")
}

func tuning(c *Config) error {
	for i, name := range c.Paths {
		if !slices.Contains(pathNames(), name) {
			return fabric.Invalidf("Paths[%d] is %q; there is: %s", i, name, strings.Join(pathNames(), ", "))
		}
		if slices.Contains(c.Paths[:i], name) {
			return fabric.Invalidf("Paths[%d] is %q for the second time; name each once", i, name)
		}
	}
	if r := roceConfig(c, nil, "", spinPolicy{}); c.EagerBytes > 0 && c.EagerBytes <= maxEager {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	if c.EagerBytes < 1 || c.EagerBytes > maxEager {
		return fabric.Invalidf("EagerBytes is %d; 1 to %d, or 0 for %d", c.EagerBytes, maxEager, DefaultEagerBytes)
	}
	if c.Window != 0 && c.Window != -1 && (c.Window < minWindow || c.Window > maxWindow) {
		return fabric.Invalidf("Window is %d; %d to %d bytes, 0 for the default, or -1 for no bound", c.Window, minWindow, maxWindow)
	}
	if c.Lanes < LanesAuto || c.Lanes > tcp.MaxLanes {
		return fabric.Invalidf("Lanes is %d; 1 to %d, 0 for the default, or %d to measure", c.Lanes, tcp.MaxLanes, LanesAuto)
	}
	if c.SocketBuffer != 0 && (c.SocketBuffer < minWindow || c.SocketBuffer > maxWindow) {
		return fabric.Invalidf("SocketBuffer is %d; %d to %d bytes, or 0 for the system's own", c.SocketBuffer, minWindow, maxWindow)
	}
	if c.SpinFor != 0 {
		return between("SpinFor", c.SpinFor, 0, maxSpin, "")
	}
	return nil
}

func between(field string, d, low, high time.Duration, hint string) error {
	if d < low || d > high {
		return fabric.Invalidf("%s is %v; %v to %v, or 0 for the default%s", field, d, low, high, hint)
	}
	return nil
}
