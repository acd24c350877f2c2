package fabrictest

import (
	"sync"

	"github.com/hipfabric/hipfabric/fabric"
)

// Arbiter is one rank's fabric.Arbiter in a group of one process: the first report of any rank is the cause of all.
// Safe for concurrent use.
type Arbiter struct {
	court *court
	rank  int

	mu   sync.Mutex
	left *fabric.Cause // why this rank is on its own
	told []func()
}

// court is what the ranks' arbiters share.
type court struct {
	mu      sync.Mutex
	members []*Arbiter
	cause   *fabric.Cause
}

// Arbiters gives the arbiters of a world of ranks, in rank order.
func Arbiters(world int) []*Arbiter {
	c := &court{}
	for r := range world {
		c.members = append(c.members, &Arbiter{court: c, rank: r})
	}
	return c.members
}

// Report settles the group's cause if nothing has, tells every rank, and returns it at once.
func (a *Arbiter) Report(local error) error {
	if left := a.alone(); left != nil {
		return left
	}
	c := a.court
	c.mu.Lock()
	first := c.cause == nil
	if first {
		travelling := *fabric.CauseOf(local)
		travelling.Err = nil
		if travelling.From < 0 {
			travelling.From = a.rank
		}
		c.cause = &travelling
	}
	cause := c.cause
	c.mu.Unlock()
	if first {
		for _, m := range c.members {
			m.tell()
		}
	}
	return cause
}

// Cause is the group's cause, nil while it is healthy.
func (a *Arbiter) Cause() error {
	if left := a.alone(); left != nil {
		return left
	}
	a.court.mu.Lock()
	defer a.court.mu.Unlock()
	if a.court.cause == nil {
		return nil
	}
	return a.court.cause
}

// OnCause runs fn once the cause is settled, at once if it is: a rank's Collective.Check belongs here, so that a call
// in flight ends too. fn must not block.
func (a *Arbiter) OnCause(fn func()) {
	a.mu.Lock()
	a.told = append(a.told, fn)
	a.mu.Unlock()
	if a.Cause() != nil {
		fn()
	}
}

// Leave cuts this rank off with a cause of its own: its reports reach nobody and it learns of none, as when its process
// is gone.
func (a *Arbiter) Leave(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = fabric.CauseOf(cause)
}

func (a *Arbiter) alone() *fabric.Cause {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left
}

func (a *Arbiter) tell() {
	a.mu.Lock()
	told := a.told
	if a.left != nil {
		told = nil
	}
	a.mu.Unlock()
	for _, fn := range told {
		fn()
	}
}
