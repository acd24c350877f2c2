package hipgo

import (
	"context"
	"fmt"
	"time"
)

// driverWithin bounds what no context bounds: to load a runtime, to count its devices and to ask what they are. It is long beside
// what a large machine takes at its first call.
const driverWithin = 30 * time.Second

// bounded gives what f does, unless f does not return: what then comes late is nobody's, and the thread that it holds is the driver's.
func bounded[T any](limit time.Duration, library, what string, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	ended := make(chan result, 1)
	go func() {
		v, err := f()
		ended <- result{v, err}
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case r := <-ended:
		return r.v, r.err
	case <-late.C:
		var none T
		return none, fmt.Errorf("%w: %w", &UnsupportedError{Device: library, Feature: fmt.Sprintf("%s does not return within %v", what, limit),
			Need: "is its driver stuck?"}, context.DeadlineExceeded)
	}
}
