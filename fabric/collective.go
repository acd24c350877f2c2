package fabric

import (
	"sync/atomic"
	"time"
)

const (
	// DefaultTimeout is how long a call may move nothing.
	DefaultTimeout = 30 * time.Second
	// NoTimeout lets a call wait for ever; the heartbeat and Abort still end it.
	NoTimeout time.Duration = -1
	// DefaultGroup is the name of a group that was given none.
	DefaultGroup = "default"
)

// Options are what a Collective adds to its Transport.
type Options struct {
	Group   string        // name, for errors; "" is DefaultGroup
	Timeout time.Duration // without progress; 0 is DefaultTimeout, NoTimeout is none
	Arbiter Arbiter       // settles the group's one cause; nil: this rank's first failure is it
}

// Collective is an engine's face on a Transport. It checks arguments, numbers calls, keeps one in flight, applies the
// deadline, keeps the first cause and records the last calls, the same for every path.
//
// A call blocks until it is done and its buffers are the caller's again, or the group has failed. It ends by the other
// ranks' calls, by Options.Timeout without progress, by the heartbeat's verdict or by Abort. Every error is an *OpError;
// ErrInvalid, ErrUnsupported and ErrClosed mean that nothing moved, every other that the group has ended. One goroutine
// calls at a time: a second one gets ErrInvalid at once. Abort, Check, Records, Progress and Stats are for any goroutine.
type Collective struct {
	fate
	t     Transport
	o     Options
	world int

	inFlight atomic.Bool
	call     Call
	pending  Pending
	handle   atomic.Uint64 // which Begin the call in flight belongs to
	driven   atomic.Bool   // a Started's Wait or Poll is in progress

	polled polled // of the call in flight

	seq              uint64   // last one used of the group
	sendSeq, recvSeq []uint64 // last ones used of each ordered pair

	recorder recorder
}

// polled is what the last Poll of a call saw.
type polled struct {
	handle, progress uint64
	at               int64
	stalled          bool
}

// New puts a Collective on t, which it owns from then on.
func New(t Transport, o Options) *Collective {
	o = o.withDefaults()
	world := t.World()
	c := &Collective{fate: fate{path: t, group: o.Group, arbiter: o.Arbiter, rank: t.Rank()}, t: t, o: o, world: world,
		sendSeq: make([]uint64, world), recvSeq: make([]uint64, world), recorder: recorder{epoch: time.Now()}}
	c.handle.Store(1) // the zero polled is of no call
	return c
}

// World is the number of ranks.
func (c *Collective) World() int { return c.world }

// Ordered says whether this path combines in rank order, and so gives identical bits on all ranks.
func (c *Collective) Ordered() bool { return c.t.Ordered() }

// Alloc gives n bytes that this path moves in place; Close them when no call uses them. Other memory works as well and
// may be copied.
func (c *Collective) Alloc(n int) (Memory, error) {
	if n < 0 || n > maxAlloc {
		return nil, c.refuse("alloc", Invalidf("alloc of %d bytes; 0 to %d are possible", n, maxAlloc))
	}
	m, err := c.t.Alloc(n)
	if err != nil {
		return nil, c.refuse("alloc", err)
	}
	return m, nil
}

// maxAlloc is beyond any machine: what is larger is a mistake.
const maxAlloc = 1 << 40

// Started is a call begun with Begin.
type Started struct {
	c      *Collective
	handle uint64
}

// Begin starts any call and never blocks; the call and its buffers belong to the path until Wait or Poll has said that
// it is done. ErrInvalid when one is in flight.
func (c *Collective) Begin(call Call) (Started, error) {
	if err := c.begin(&call); err != nil {
		return Started{}, err
	}
	c.recorder.queued()
	return Started{c, c.handle.Load()}, nil
}

// Wait blocks until the call is done and gives its error.
func (s Started) Wait() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.c.driven.Store(false)
	return s.c.wait()
}

// Poll makes progress without blocking. After done the call has ended, and err is its error.
func (s Started) Poll() (done bool, err error) {
	if err := s.enter(); err != nil {
		return true, err
	}
	defer s.c.driven.Store(false)
	done, err = s.c.poll()
	if err != nil || done {
		return true, s.c.end(err)
	}
	return false, nil
}

// enter lets one goroutine at a time drive the call that s began.
func (s Started) enter() error {
	if s.c == nil {
		return &OpError{Op: "wait", Rank: -1, Peer: -1, From: -1, Err: Invalidf("a Started of no Begin")}
	}
	if !s.c.driven.CompareAndSwap(false, true) {
		return s.c.refuse("wait", Invalidf("another goroutine is waiting for this call"))
	}
	if !s.c.inFlight.Load() || s.handle != s.c.handle.Load() {
		s.c.driven.Store(false)
		return s.c.refuse("wait", Invalidf("this call was already waited for"))
	}
	return nil
}

// stallAfter is how long a polled call moves nothing before the other ranks hear whom it waits for.
const stallAfter = 10 * time.Millisecond

// poll is one round of a call that its engine polls; the deadline holds for it as for one that is waited for.
func (c *Collective) poll() (bool, error) {
	done, err := c.pending.Poll()
	if done || err != nil {
		return done, err
	}
	now := c.recorder.now()
	if p := c.pending.Progress(); p != c.polled.progress || c.polled.handle != c.handle.Load() {
		c.polled = polled{handle: c.handle.Load(), progress: p, at: now}
		return false, nil
	}
	idle := time.Duration(now - c.polled.at)
	if c.o.Timeout >= 0 && idle >= c.o.Timeout {
		return true, c.pending.Stall(c.o.Timeout)
	}
	if idle >= stallAfter && !c.polled.stalled {
		c.polled.stalled = true
		_ = c.pending.Stall(idle)
	}
	return false, nil
}

func (c *Collective) do(call *Call) error {
	if err := c.begin(call); err != nil {
		return err
	}
	return c.wait()
}

func (c *Collective) begin(call *Call) error {
	if err := c.usable(call.Op.String()); err != nil {
		return err
	}
	if !c.inFlight.CompareAndSwap(false, true) {
		now := c.recorder.progress()
		return c.refuse(call.Op.String(), Invalidf("a call of this group is in flight (%v seq %d); wait for it, or use another group", now.Op, now.Seq))
	}
	err := check(call, regionOf(call.In), regionOf(call.Out), c.rank, c.world)
	if err == nil && call.Part > 0 && !call.follows(&c.call) {
		err = Invalidf("part %d of %v, of %d bytes, does not follow the last call: %v part %d, of %d bytes",
			call.Part, call.Op, call.Whole, c.call.Op, c.call.Part, c.call.Whole)
	}
	if err != nil {
		c.inFlight.Store(false)
		return c.refuse(call.Op.String(), err)
	}
	seq, fromSeq := c.call.Seq, c.call.FromSeq
	c.call = *call
	if c.call.Part > 0 {
		c.call.Seq, c.call.FromSeq = seq, fromSeq
	} else {
		c.number(&c.call)
	}
	// The books are kept while the first bytes are on their way.
	c.pending, err = c.t.Begin(&c.call)
	c.recorder.begin(&c.call, c.recorder.now())
	if err != nil {
		return c.end(err)
	}
	return nil
}

func (c *Collective) wait() error { return c.end(c.pending.Wait(c.o.Timeout)) }

// locate gives what ended a part, as this rank's path saw it, the part's number in the call.
func (c *Call) locate(err error) error {
	cause := CauseOf(err)
	if !c.cut() || cause.From >= 0 || cause.Part == c.Part {
		return err
	}
	mine := *cause
	mine.Part = c.Part
	return &mine
}

// number gives the call its place in the group's or the pair's sequence.
func (c *Collective) number(call *Call) {
	if call.Class == Group {
		c.seq++
		call.Seq, call.FromSeq = c.seq, c.seq
		return
	}
	if call.Sends() {
		c.sendSeq[call.Peer]++
		call.Seq = c.sendSeq[call.Peer]
	}
	if call.Receives() {
		c.recvSeq[call.From]++
		call.FromSeq = c.recvSeq[call.From]
	}
}

// end closes the books on the call in flight, whatever became of it.
func (c *Collective) end(err error) error {
	if err == nil {
		c.recorder.end(Done)
	} else {
		c.recorder.end(Failed)
		err = c.fail(c.call.Op.String(), c.call.shownSeq(), c.call.locate(err))
	}
	c.call.In, c.call.Out, c.call.Lengths, c.call.InLengths = nil, nil, nil, nil
	c.handle.Add(1) // a Started of this call is void before the next one begins
	c.inFlight.Store(false)
	return err
}

// Progress is what this rank is doing now, or did last.
func (c *Collective) Progress() Progress {
	p := c.recorder.progress()
	if p.Running {
		p.Waiting = c.t.Waiting()
	}
	return p
}

// Records copies the last RecordSlots calls, oldest first.
func (c *Collective) Records() []Record { return c.recorder.records() }

// Stats reads the counters.
func (c *Collective) Stats() Stats {
	s := c.recorder.stats()
	s.Refused, s.Transport = c.refused.Load(), c.t.Stats()
	return s
}
