package stage

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
	"github.com/hipfabric/hipfabric/fabric/internal/streams"
)

// DefaultPartBytes is how much of a call is staged at once: of each rank's block, where there is one a rank.
const DefaultPartBytes = 512 << 10

// Config says what a group's path for device memory is made of.
type Config struct {
	Transport fabric.Transport // the wire; owned by Open, also when it fails
	Driver    Driver           // the device; the kernels gate needs it to be a Launcher too
	Gate      Gate
	Image     []byte         // the kernels gate's code; nil only with another gate. Copied
	PartBytes int            // multiple of 16, 16 to 64 MiB, the same on every rank; 0 is DefaultPartBytes
	Group     string         // name, for errors; "" is fabric.DefaultGroup
	Timeout   time.Duration  // without progress, of a call and of a copy; 0 is fabric.DefaultTimeout, fabric.NoTimeout none
	Arbiter   fabric.Arbiter // settles the group's one cause; nil: this rank's first failure is it
	Proxy     *Proxy         // shared by the groups of a device, whose Driver it has; nil: one of its own
	Yield     bool           // more waits spin on this machine than it has cores: give the core away between looks
	Logger    *slog.Logger   // nil: none
}

func (c *Config) validate() error {
	if c.Transport == nil || c.Driver == nil {
		return fabric.Invalidf("stage needs a Transport and a Driver")
	}
	if c.PartBytes == 0 {
		c.PartBytes = DefaultPartBytes
	}
	if c.PartBytes < plan.MinPart || c.PartBytes > plan.MaxPart || c.PartBytes%plan.Grain != 0 {
		return fabric.Invalidf("PartBytes is %d; a multiple of %d from %d to %d is needed", c.PartBytes, plan.Grain, plan.MinPart, plan.MaxPart)
	}
	switch c.Gate {
	case Auto:
		c.Gate = Words
	case Words, Kernels:
	default:
		return fabric.Invalidf("Gate is %v; stage.Auto, stage.Words or stage.Kernels", c.Gate)
	}
	if c.Timeout == 0 {
		c.Timeout = fabric.DefaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Transport is a group's path for device memory. Its methods are fabric.StreamTransport's.
type Transport struct {
	c           Config
	d           Driver
	rank, world int
	partBytes   int
	wire        fabric.Transport
	inner       *fabric.Collective // on wire, driven by the proxy
	proxy       *Proxy
	ownProxy    bool
	gate        gate
	words       words
	slabs       slabs
	registered  registry
	sync        syncer
	used        streams.Used

	// The proxy's.
	jobs                  [sets]job
	begun, wired, lifted  uint64 // jobs so far: taken from the gate, through the wire, ended
	flight                fabric.Started
	lengths               []int        // of the part on the wire
	ahead                 []int        // of one that is fetched meanwhile
	pieces                []plan.Piece // room for a part's
	asked                 []byte       // AllToAllV: this rank's number, and all ranks'
	overdue               int          // ticks of the watch since the failure
	queued, finished      atomic.Uint64
	moved                 atomic.Uint64 // steps that made progress
	closing               atomic.Bool
	inside                atomic.Int32                 // calls of Queue, Sync, Alloc and plans in progress
	failed, cause, broken atomic.Pointer[fabric.Cause] // what this rank saw first; the group's; what the device did besides
	settled               chan struct{}                // closed once cause is set
	reason                atomic.Uint64                // why the streams are let go, as kernels name it
	releasing             sync.Mutex
	released              atomic.Bool
	drained               chan struct{} // closed once no copy of this group can land any more
	isDrained             atomic.Bool
	closed                sync.Once
	closeErr              error
}

// Open makes a group's path for device memory. It allocates all that calls need: none is allocated later. Every rank opens with
// the same PartBytes. Not while a stream of the device captures.
//
// Errors are ErrInvalid for a setting and ErrUnsupported for a device, each naming it, ErrDevice when the device fails.
func Open(c Config) (*Transport, error) {
	if err := c.validate(); err != nil {
		if c.Transport != nil {
			err = errors.Join(err, c.Transport.Close())
		}
		return nil, err
	}
	world := c.Transport.World()
	t := &Transport{c: c, d: c.Driver, rank: c.Transport.Rank(), world: world, partBytes: c.PartBytes, wire: c.Transport, proxy: c.Proxy,
		lengths: make([]int, 2*world), ahead: make([]int, 2*world), pieces: make([]plan.Piece, 0, world), asked: make([]byte, 16*world),
		settled: make(chan struct{}), drained: make(chan struct{})}
	t.sync.free = make(chan struct{}, 1)
	t.registered.shared = t.d.Integrated()
	t.inner = fabric.New(c.Transport, fabric.Options{Group: c.Group, Timeout: c.Timeout, Arbiter: inward{t}})
	if err := t.open(); err != nil {
		return nil, errors.Join(err, t.inner.Close(), t.free())
	}
	if err := t.proxy.add(t); err != nil {
		return nil, errors.Join(err, t.inner.Close(), t.free())
	}
	return t, nil
}

func (t *Transport) open() (err error) {
	if t.words, err = newWords(t.d); err != nil {
		return t.openErr("pinned memory for the words", err)
	}
	if t.slabs, err = newSlabs(t.d, t.world, t.partBytes); err != nil {
		return t.openErr("pinned memory for the slabs", err)
	}
	t.lend("slabs", t.slabs.mem) // until the wire is closed, before they are freed
	if err = t.sync.open(t.d); err != nil {
		return t.openErr("an event for waits", err)
	}
	if t.c.Gate == Kernels {
		t.gate, err = newKernelsGate(t)
	} else {
		t.gate = &wordsGate{t: t}
	}
	if err != nil {
		return err
	}
	if t.proxy == nil {
		t.proxy, err = NewProxy(t.d)
		t.ownProxy = true
	}
	return err
}

func (t *Transport) openErr(what string, err error) error {
	return &deviceError{fmt.Sprintf("%s on %v: %v", what, t.d, err), err}
}

// deviceError is an ErrDevice before there is a group whose cause it could be.
type deviceError struct {
	text string
	err  error
}

func (e *deviceError) Error() string   { return fabric.ErrDevice.Error() + ": " + e.text }
func (e *deviceError) Unwrap() []error { return []error{fabric.ErrDevice, e.err} }

// Kind is "staged".
func (t *Transport) Kind() string { return "staged" }

// Rank is this rank.
func (t *Transport) Rank() int { return t.rank }

// World is the number of ranks.
func (t *Transport) World() int { return t.world }

// Ordered is the wire's.
func (t *Transport) Ordered() bool { return t.wire.Ordered() }

// Waiting is the wire's.
func (t *Transport) Waiting() uint64 { return t.wire.Waiting() }

// Progress is the part on the wire, or the last one.
func (t *Transport) Progress() fabric.Progress { return t.inner.Progress() }

// Records are of the last parts; a call appears once its stream has reached it.
func (t *Transport) Records() []fabric.Record { return t.inner.Records() }

// Stats are the wire's and the calls' on it.
func (t *Transport) Stats() fabric.Stats { return t.inner.Stats() }

// GateUsed is the gate that Open chose.
func (t *Transport) GateUsed() Gate { return t.c.Gate }
