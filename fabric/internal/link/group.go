package link

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how a Group waits.
type Options struct {
	SpinFor time.Duration // polling after the last progress before a wait parks
	Yield   bool          // more ranks spin than there are cores: give the core away between polls
}

// Work is what a Group polls while it waits.
type Work interface {
	Poll() (done bool, err error)
	Progress() uint64 // grows as bytes move
	Stalled(bool)     // said before a park and after the progress that ends one
}

// ErrDriven says that another goroutine is driving the group.
var ErrDriven = errors.New("another goroutine is driving these sockets")

const (
	idle = iota
	driven
	tended  // driven for a moment, which Enter and Close wait for
	closing // driven, and to be closed by the driver as it leaves
	closed
)

// Group is a set of connections that one goroutine at a time drives.
type Group struct {
	o      Options
	poller *poller
	state  atomic.Int32
	left   chan struct{} // closed once the descriptors are
	close  sync.Once

	wakeMu sync.Mutex // the poller is woken only while its descriptors are open
	abort  atomic.Pointer[abortCause]
	polls  atomic.Uint64
	parks  atomic.Uint64
}

type abortCause struct{ err error }

// New makes a Group without connections.
func New(o Options) (*Group, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	return &Group{o: o, poller: p, left: make(chan struct{})}, nil
}

// Add takes a connected non-blocking socket, which is the Group's from then on, and closed with it. Only the driver calls
// it, or the maker before the first Enter.
func (g *Group) Add(fd int) (*Conn, error) {
	c := &Conn{fd: fd, Readable: true, Writable: true}
	c.out.stage, c.in.stage = make([]byte, stageBytes), make([]byte, stageBytes)
	if err := g.poller.add(c); err != nil {
		closeSocket(fd)
		return nil, err
	}
	return c, nil
}

// Drop resets a connection before its group is closed: what it still had to send is gone. Only the driver calls it.
func (g *Group) Drop(c *Conn) {
	g.poller.remove(c)
	resetSocket(c.fd)
	c.fd = -1
}

// Enter makes the caller the driver until Leave, also of an aborted group, whose Wait gives the cause. It gives ErrDriven
// while another goroutine drives, and what Abort was given, or os.ErrClosed, once the group is closed.
func (g *Group) Enter() error {
	for !g.state.CompareAndSwap(idle, driven) {
		switch g.state.Load() {
		case tended:
			runtime.Gosched()
		case idle:
		case driven:
			return g.abortedOr(ErrDriven)
		default:
			return g.abortedOr(os.ErrClosed)
		}
	}
	return nil
}

// Tend drives the group for the short while of f, which never blocks, unless somebody drives it already or it is closed.
// It says whether f ran.
func (g *Group) Tend(f func()) bool {
	if !g.state.CompareAndSwap(idle, tended) {
		return false
	}
	f()
	g.state.Store(idle)
	return true
}

// Wake makes a parked Wait poll once more. Safe from any goroutine.
func (g *Group) Wake() { g.wake() }

// Leave ends what Enter began.
func (g *Group) Leave() {
	if !g.state.CompareAndSwap(driven, idle) {
		g.release()
	}
}

// Abort ends a wait in progress, and every later one, with err. The first one stays.
func (g *Group) Abort(err error) {
	if g.abort.CompareAndSwap(nil, &abortCause{err}) {
		g.wake()
	}
}

func (g *Group) wake() {
	g.wakeMu.Lock()
	defer g.wakeMu.Unlock()
	if g.state.Load() != closed {
		g.poller.wake()
	}
}

// Aborted is what Abort was given, nil before.
func (g *Group) Aborted() error {
	if a := g.abort.Load(); a != nil {
		return a.err
	}
	return nil
}

func (g *Group) abortedOr(err error) error {
	if cause := g.Aborted(); cause != nil {
		return cause
	}
	return err
}

// Close closes the connections, after a driver in progress has left: Abort first, or it may stay. Idempotent.
func (g *Group) Close() {
	g.close.Do(func() {
		for {
			switch g.state.Load() {
			case idle:
				if g.state.CompareAndSwap(idle, closing) {
					g.release()
					return
				}
			case tended:
				runtime.Gosched()
			case driven:
				if g.state.CompareAndSwap(driven, closing) {
					g.wake()
					return
				}
			}
		}
	})
	<-g.left
}

func (g *Group) release() {
	g.wakeMu.Lock()
	defer g.wakeMu.Unlock()
	g.state.Store(closed)
	for _, c := range g.poller.conns {
		if c != nil {
			closeQuietly(c.fd)
		}
	}
	g.poller.close()
	close(g.left)
}

// Refresh looks, by one system call, which connections with a frame under way are worth a try, and sets their hints. It
// says whether any is.
func (g *Group) Refresh() bool { return g.poller.refresh() }

// Counts are the group's monotonic counters: rounds that moved nothing, to clockEvery a call, and parks.
func (g *Group) Counts() (polls, parks uint64) { return g.polls.Load(), g.parks.Load() }

const (
	clockEvery = 16  // idle polls between looks at the clock
	turnEvery  = 256 // idle polls between turns for this process's other goroutines: a turn may wake a thread for them
	crowdEvery = 16  // the same while ranks share cores, perhaps in this process
)

// Wait polls w until it is done or fails: at first without pause, and once nothing has moved for SpinFor, parked. Once
// nothing has moved for limit it gives os.ErrDeadlineExceeded; a negative limit is none. Only the driver calls it.
func (g *Group) Wait(w Work, limit time.Duration) error {
	turns := turnEvery
	if g.o.Yield {
		turns = crowdEvery
	}
	var moved time.Time // when progress was last seen, to clockEvery polls
	last, idlePolls, stalled := w.Progress(), 0, false
	for {
		if err := g.Aborted(); err != nil {
			return err
		}
		done, err := w.Poll()
		if done || err != nil {
			if stalled {
				w.Stalled(false)
			} else {
				g.poller.spun()
			}
			return err
		}
		if p := w.Progress(); p != last {
			last, idlePolls, moved = p, 0, time.Time{}
			if stalled {
				w.Stalled(false)
				stalled = false
			}
			continue
		}
		idlePolls++
		if g.o.Yield {
			YieldThread()
		}
		if idlePolls%turns == 0 {
			runtime.Gosched()
		}
		if idlePolls%clockEvery != 0 && !stalled {
			continue
		}
		if idlePolls%clockEvery == 0 {
			g.polls.Add(clockEvery)
		}
		now := time.Now()
		if moved.IsZero() {
			moved = now
		}
		if now.Sub(moved) < g.o.SpinFor && !stalled {
			continue
		}
		if !stalled {
			w.Stalled(true)
			stalled = true
		}
		var deadline time.Time
		if limit >= 0 {
			deadline = moved.Add(limit)
		}
		g.parks.Add(1)
		if err := g.poller.park(deadline); err != nil {
			if cause := g.Aborted(); cause != nil {
				return cause
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			// A process that was stopped finds its deadline passed and its bytes here.
			if done, err := w.Poll(); done || err != nil {
				w.Stalled(false)
				return err
			}
			if w.Progress() == last {
				return os.ErrDeadlineExceeded
			}
		}
	}
}
