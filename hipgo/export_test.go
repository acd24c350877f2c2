package hipgo

import "context"

// Exercise is the self-test's part on a stream, with words that a test may have spoiled.
func (d *Device) Exercise(ctx context.Context, s Stream, w Words) error { return d.exercise(ctx, s, w) }

// SelfTestUnbounded is the self-test without the bound on calls of the driver.
func (d *Device) SelfTestUnbounded(ctx context.Context) error { return d.selfTest(ctx) }

// WordsAt pretends that words are at an address of the device's.
func WordsAt(w []uint64, ptr uintptr) Words { return Words{w, ptr} }
