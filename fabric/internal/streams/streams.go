// Package streams remembers on which of an engine's streams calls were queued, for who must not free what these touch.
package streams

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Used are the streams with calls that they are not known to have passed. One goroutine at a time adds; the rest is for any.
type Used struct {
	mu   sync.Mutex
	list []use
	laid atomic.Uint64 // uses whose operations are all on their streams
}

type use struct {
	stream uintptr
	last   uint64 // use of it
	plans  int    // that have calls in graphs captured from it: a replay is announced by nobody
}

// Begin comes before the first operation of a use of the stream, and LaidOut after the last one. fresh says that the stream was not
// remembered before.
func (u *Used) Begin(stream uintptr) (fresh bool) { return u.change(stream, 0) }

// LaidOut says that the operations of the use that began last are on its stream.
func (u *Used) LaidOut() { u.laid.Add(1) }

// Laid is the number of uses that were laid out.
func (u *Used) Laid() uint64 { return u.laid.Load() }

// Keep has the stream remembered for a plan, whatever it passes, until as many Drops.
func (u *Used) Keep(stream uintptr) { u.change(stream, 1) }

// Drop takes back one Keep.
func (u *Used) Drop(stream uintptr) {
	u.change(stream, -1)
	u.LaidOut()
}

func (u *Used) change(stream uintptr, plans int) (fresh bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.IndexFunc(u.list, func(a use) bool { return a.stream == stream })
	if fresh = i < 0; fresh {
		i = len(u.list)
		u.list = append(u.list, use{stream: stream})
	}
	u.list[i].last = u.laid.Load() + 1
	u.list[i].plans += plans
	return fresh
}

// Passed is told that a stream has passed what was on it when Laid was upTo.
func (u *Used) Passed(stream uintptr, upTo uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, func(a use) bool { return a.stream == stream && a.plans == 0 && a.last <= upTo })
}

// Left are those that are remembered.
func (u *Used) Left() (all []uintptr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range u.list {
		all = append(all, a.stream)
	}
	return all
}
