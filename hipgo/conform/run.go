package conform

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/hipgo"
)

// Options of a Run. The zero value is what owners of GPUs use.
type Options struct {
	Bound  time.Duration // of one wait for the device, after which it counts as stuck; 0 is 2 s
	Settle time.Duration // how long what must not happen is given to happen; 0 is 20 ms
	Parked int           // streams parked at once, more than the device has hardware queues; 0 is 8
	Only   []string      // prefixes of the checks to run; none: all
}

func (o Options) filled() Options {
	if o.Bound <= 0 {
		o.Bound = 2 * time.Second
	}
	if o.Settle <= 0 {
		o.Settle = 20 * time.Millisecond
	}
	if o.Parked <= 0 {
		o.Parked = 8
	}
	return o
}

func (o Options) wants(name string) bool {
	return len(o.Only) == 0 || slices.ContainsFunc(o.Only, func(p string) bool { return strings.HasPrefix(name, p) })
}

// patience is how many bounds one check may take: it may meet several waits that end late, and one that never does.
const patience = 6

// Names lists the checks in the order in which Run runs them.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// Run runs the checks on d, one after the other, and blocks until the last has ended; each is bounded by a few times
// Options.Bound. When ctx ends, the check under way is given up as if out of time and the rest are failed as not run.
// Nobody else may use the device meanwhile: its streams would share hardware queues with those under test.
func Run(ctx context.Context, d *hipgo.Device, o Options) Report {
	return runAll(ctx, d, o, realCalls(), checks())
}

func runAll(ctx context.Context, d *hipgo.Device, o Options, calls runtimeCalls, all []check) Report {
	o = o.filled()
	r := describe(d)
	r.Bound = o.Bound
	spoilt := "" // by an earlier check: what comes after it would fail for that reason, or not come back
	for _, c := range all {
		if !o.wants(c.name) {
			continue
		}
		if ctx.Err() != nil {
			spoilt = context.Cause(ctx).Error()
		}
		if spoilt != "" {
			r.Checks = append(r.Checks, Check{Name: c.name, Result: Fail, Seen: "not run: " + spoilt})
			continue
		}
		p := &probe{d: d, o: o, calls: calls}
		done, back := runOne(ctx, p, c)
		r.Checks = append(r.Checks, done)
		switch {
		case !back:
			spoilt = "a call of " + c.name + " has not come back"
		case p.left:
			spoilt = "streams of " + c.name + " are still parked, and freeing memory waits for them"
		}
	}
	return r
}

func describe(d *hipgo.Device) Report {
	v := d.Runtime().Version()
	r := Report{Format: 1, Device: d.Name(), Arch: d.Arch(), PCI: d.PCI(), Library: d.Runtime().Library()}
	r.HIP = v.String()
	if platform := d.Runtime().Platform(); platform != "HIP" {
		r.HIP = platform + " " + r.HIP
	}
	r.OS, r.Kernel = system()
	return r
}

// verdict turns what a check returned into its result.
func verdict(c *Check, seen string, err error) {
	var k *knownError
	switch {
	case err == nil:
		c.Result, c.Seen = Pass, seen
	case errors.As(err, &k):
		c.Result, c.Seen, c.Report = Known, k.seen, k.report
	case errors.Is(err, errors.ErrUnsupported):
		c.Result, c.Seen = Unsupported, oneLine("", err)
	default:
		c.Result, c.Seen = Fail, oneLine("", err)
	}
}

// runOne runs c on a goroutine of its own, since any call may block in the driver. back is false when one still does.
func runOne(ctx context.Context, p *probe, c check) (done Check, back bool) {
	done.Name = c.name
	began := time.Now()
	defer func() { done.Took = time.Since(began) }()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	ended := make(chan struct{})
	var seen string
	var err error
	go func() {
		defer close(ended)
		runtime.LockOSThread() // a capture ends on the thread on which it began
		defer runtime.UnlockOSThread()
		seen, err = p.run(ctx, c.run)
	}()
	limit := time.NewTimer(patience * p.o.Bound)
	defer limit.Stop()
	select {
	case <-ended:
		verdict(&done, seen, err)
		return done, true
	case <-limit.C:
	case <-ctx.Done():
	}
	giveUp(errOutOfTime)
	done.Result, done.Parked = Fail, p.describeParked()
	if p.waitReleasing(ended) {
		done.Seen = fmt.Sprintf("not done within %v; came back once everything parked was released: %s", patience*p.o.Bound, oneLine(seen, err))
		return done, true
	}
	done.Seen = fmt.Sprintf("not done within %v, nor as long again after everything parked was released", patience*p.o.Bound)
	return done, false
}

func oneLine(seen string, err error) string {
	if err != nil {
		seen = err.Error()
	}
	return strings.ReplaceAll(seen, "\n", " ")
}

var errOutOfTime = errors.New("the check is out of time")

// knownError is a failure that has a public report.
type knownError struct{ report, seen string }

func (e *knownError) Error() string { return e.seen + " [" + e.report + "]" }

func known(report, format string, args ...any) error {
	return &knownError{report: report, seen: fmt.Sprintf(format, args...)}
}

// unsupported says what the check needs and the device lacks.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errors.ErrUnsupported}, args...)...)
}
