package stage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
)

// subject is a rank over a double, as the contract's suite wants it.
func (r *rank) subject() fabrictest.Subject {
	d := r.d
	return fabrictest.Stream(r.StreamCollective, fabrictest.Device{
		Stream: r.s,
		Alloc:  func(n int) (fabric.DevPtr, error) { return fabric.DevPtr(d.alloc(n, false).at), nil },
		Free:   func(p fabric.DevPtr) error { return d.release(uintptr(p)) },
		Upload: func(dst fabric.DevPtr, src []byte) error {
			_, b := d.bytes(uintptr(dst), len(src))
			return copied(b, src)
		},
		Download: func(dst []byte, src fabric.DevPtr) error {
			_, b := d.bytes(uintptr(src), len(dst))
			return copied(dst, b)
		},
		Synchronize: r.synchronize,
		Hold:        func() (func(), error) { return d.hold(uintptr(r.s)), nil },
	})
}

// synchronize waits for the stream by the device's own means.
func (r *rank) synchronize(ctx context.Context) error {
	reached := make(chan struct{})
	r.d.line(uintptr(r.s)).put(func() { close(reached) })
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func copied(dst, src []byte) error {
	if copy(dst, src) != len(src) || len(src) != len(dst) {
		return errors.New("no such memory")
	}
	return nil
}

// small says whether parts of a few bytes are no waste of minutes on what the suite does in a group of this name.
func small(group string) bool { return group != "ring" && group != "one-way" && group != "facing" }

func opener(partBytes int) fabrictest.Opener {
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		partBytes := partBytes
		if !small(o.Group) {
			partBytes = max(partBytes, fabrictest.PartBytes)
		}
		ranks := openRanks(t, world, func(_ int, c *stage.Config, _ *double) {
			c.PartBytes, c.Group, c.Timeout = partBytes, o.Group, o.Timeout
		})
		subjects := make([]fabrictest.Subject, world)
		for r := range ranks {
			subjects[r] = ranks[r].subject()
		}
		return subjects
	}
}

func TestContractWhole(t *testing.T) {
	notUnderRace(t)
	contract(t, opener(stage.DefaultPartBytes))
}
func TestContractInParts(t *testing.T) {
	notUnderRace(t)
	contract(t, opener(64))
}

// notUnderRace is for what the race detector sees in another run of the contract, too.
func notUnderRace(t *testing.T) {
	if underRace {
		t.Skip("left out under the race detector, for time")
	}
}

func contract(t *testing.T, open fabrictest.Opener) {
	fabrictest.RunPairwise(t, open)
	fabrictest.RunStream(t, open)
}
