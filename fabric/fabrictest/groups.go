package fabrictest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Group is one rank of a group in this process, as an engine's test uses it. Host and Control are the engine's; the rest
// is the test's.
type Group struct {
	Host    *fabric.Collective
	Control Control

	groups  []*Group
	net     *Network
	arbiter *Arbiter
	control *control
	once    sync.Once
}

// Options shape Groups; the zero value is good.
type Options struct {
	Name    string        // of the group; "" is fabric.DefaultGroup
	Timeout time.Duration // without progress; 0 is 5 s, fabric.NoTimeout is none
}

// Groups gives the n ranks of a group, in rank order, and closes them when the test ends. At most one Options.
func Groups(t testing.TB, n int, opts ...Options) []*Group {
	t.Helper()
	if n < 1 || n > fabric.MaxWorld || len(opts) > 1 {
		t.Fatalf("fabrictest: Groups of %d ranks and %d Options; 1 to %d ranks and at most one Options are possible", n, len(opts), fabric.MaxWorld)
	}
	var o Options
	if len(opts) == 1 {
		o = opts[0]
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	net, arbiters, board := NewNetwork(n), Arbiters(n), newSwitchboard(n, o.Name)
	groups := make([]*Group, n)
	for r := range groups {
		host := fabric.New(net.Transport(r), fabric.Options{Group: o.Name, Timeout: o.Timeout, Arbiter: arbiters[r]})
		c := board.ends[r]
		c.fails = func() error {
			if err := host.Check(); err != nil {
				return fabric.CauseOf(err)
			}
			return nil
		}
		c.report = func(cause error) { _ = arbiters[r].Report(cause) }
		groups[r] = &Group{Host: host, Control: c, groups: groups, net: net, arbiter: arbiters[r], control: c}
		arbiters[r].OnCause(func() {
			_ = host.Check() // ends the call in flight
			c.end()
		})
	}
	t.Cleanup(func() {
		for _, g := range groups {
			if err := g.Close(); err != nil {
				t.Errorf("fabrictest: rank %d: close: %v", g.Rank(), err)
			}
		}
	})
	return groups
}

// Rank is this rank, 0 to World-1.
func (g *Group) Rank() int { return g.Host.Rank() }

// World is the number of ranks.
func (g *Group) World() int { return g.Host.World() }

// Done is closed at the group's first failure or at Close.
func (g *Group) Done() <-chan struct{} { return g.control.done }

// Err is the group's one cause, nil while it is healthy.
func (g *Group) Err() error { return g.Host.Check() }

// Abort ends the group on every rank, as fabric.Collective's.
func (g *Group) Abort(cause error) { g.Host.Abort(cause) }

// Close ends this rank's use of the group. It is idempotent.
func (g *Group) Close() error {
	err := g.Host.Close()
	g.control.leave()
	return err
}

// Kill ends this rank as SIGKILL would end its process: its own calls fail, and every other rank's end with
// ErrPeerFailed that names it, on Host and on Control, in a call or idle. Safe for concurrent use and idempotent.
func (g *Group) Kill() {
	g.once.Do(func() {
		rank := g.Rank()
		cause := &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: rank, From: -1, Text: fmt.Sprintf("rank %d was killed", rank)}
		g.arbiter.Leave(cause)
		_ = g.Host.Check() // keeps the cause and ends the call in flight
		g.net.Kill(rank)
		g.control.end()
		for _, other := range g.groups {
			if other != g && other.arbiter.alone() == nil {
				_ = other.arbiter.Report(cause)
				return
			}
		}
	})
}

// Partition stops Host's traffic between this rank and peers, without loss, until Heal: calls that need it wait, and
// end at their Timeout. Control and the group's cause still travel, as over another network.
func (g *Group) Partition(peers ...int) { g.each(peers, g.net.Partition) }

// Heal ends a Partition; what was under way goes on.
func (g *Group) Heal(peers ...int) { g.each(peers, g.net.Heal) }

func (g *Group) each(peers []int, do func(a, b int)) {
	for _, p := range peers {
		if p >= 0 && p < g.World() && p != g.Rank() {
			do(g.Rank(), p)
		}
	}
}

// eachLimit bounds a whole Each: far longer than any test should take, far shorter than go test's own limit.
const eachLimit = time.Minute

// Each runs fn once a rank, all at the same time, and waits for all. Every error fails the test and names its rank; so
// does a rank that has not ended after a minute, with what it waits for, and the group is aborted. fn must return
// errors rather than call t.FailNow, which belongs to the test's own goroutine.
func Each(t testing.TB, groups []*Group, fn func(g *Group) error) {
	t.Helper()
	errs := make([]error, len(groups))
	ended := make(chan int, len(groups))
	for i, g := range groups {
		go func() {
			errs[i] = errors.New("the rank's function did not return: it panicked or called t.FailNow")
			defer func() { ended <- i }()
			errs[i] = fn(g)
		}()
	}
	limit := time.NewTimer(eachLimit)
	defer limit.Stop()
	var finished []int
	for range groups {
		select {
		case i := <-ended:
			finished = append(finished, i)
		case <-limit.C:
			var late []string
			for i, g := range groups {
				if !slices.Contains(finished, i) {
					p := g.Host.Progress()
					late = append(late, fmt.Sprintf("rank %d (%v seq %d, waits for ranks %#b)", g.Rank(), p.Op, p.Seq, p.Waiting))
				}
			}
			groups[0].Abort(errors.New("a rank of fabrictest.Each did not end"))
			t.Fatalf("fabrictest: not ended after %v: %s", eachLimit, strings.Join(late, ", "))
		}
	}
	for i, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", groups[i].Rank(), err)
		}
	}
}
