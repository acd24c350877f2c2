package hipgo

import (
	"context"
	"runtime"
	"time"
)

const (
	pollEager = 200                    // times without a pause: the end is often microseconds away
	pollFirst = 20 * time.Microsecond  // the first pause
	pollLast  = 500 * time.Microsecond // and the longest
)

// poll asks until the answer is yes, an error, or ctx has ended.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for range pollEager {
		if done, err := ask(); done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		runtime.Gosched()
	}
	pause := pollFirst
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if done, err := ask(); done || err != nil {
			return err
		}
		pause = min(2*pause, pollLast)
		timer.Reset(pause)
	}
}
