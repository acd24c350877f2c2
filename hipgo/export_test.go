package hipgo

import (
	"context"
	"time"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// Exercise is the self-test's part on a stream, with words that a test may have spoiled.
func (d *Device) Exercise(ctx context.Context, s Stream, w Words) error { return d.exercise(ctx, s, w) }

// SelfTestUnbounded is the self-test without the bound on calls of the driver.
func (d *Device) SelfTestUnbounded(ctx context.Context) error { return d.selfTest(ctx) }

// Within bounds what Runtime.Count and its like bound.
func (r *Runtime) Within(limit time.Duration) { r.within = limit }

// OpenWithin is Open of a library that load loads.
func OpenWithin(limit time.Duration, library string, load func() (*driver.Table, error)) (*Runtime, error) {
	return open(limit, library, load)
}

// WordsAt pretends that words are at an address of the device's.
func WordsAt(w []uint64, ptr uintptr) Words { return Words{w, ptr} }
