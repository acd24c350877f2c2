package verbs

import (
	"slices"
	"sync"
	"sync/atomic"
)

// handles gives numbers to what is open. The low bits of a number are its place, the rest its turn, so that it is never given again.
type handles struct {
	mu    sync.Mutex               // of changes
	open  atomic.Pointer[[]*given] // by place; replaced whole, so that finding takes no lock
	turns uintptr
}

type given struct {
	number uintptr
	of     child
	on     *hca // nil: on none
}

const (
	placeBits = 20
	places    = 1 << placeBits
)

// find gives nil of a number that is not open.
func (t *handles) find(number uintptr) child {
	open := t.open.Load()
	if open == nil {
		return nil
	}
	place := int(number % places)
	if place >= len(*open) {
		return nil
	}
	g := (*open)[place]
	if g == nil || g.number != number {
		return nil
	}
	return g.of
}

// all is what is open.
func (t *handles) all() []*given {
	open := t.open.Load()
	if open == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*open), func(g *given) bool { return g == nil })
}

// give closes what it has no number for.
func (t *handles) give(of child, on *hca) (uintptr, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var open []*given
	if now := t.open.Load(); now != nil {
		open = slices.Clone(*now)
	}
	place := slices.Index(open, nil)
	if place < 0 {
		place = len(open)
		open = append(open, nil)
	}
	if place == places {
		_ = of.Close() // that there is no number is what matters
		return 0, invalid("%d handles are open, and there are no more: close some", places)
	}
	t.turns++
	g := &given{number: t.turns<<placeBits | uintptr(place), of: of, on: on}
	open[place] = g
	t.open.Store(&open)
	return g.number, nil
}

// take ends a number, and with an HCA's those of what was on it.
func (t *handles) take(number uintptr, of child) {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := slices.Clone(*t.open.Load())
	on, whole := of.(*hca)
	for place, g := range open {
		if g != nil && (g.number == number || whole && g.on == on) {
			open[place] = nil
		}
	}
	t.open.Store(&open)
}
