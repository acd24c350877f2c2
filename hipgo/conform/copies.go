package conform

import (
	"errors"
	"fmt"
)

// calls is how many calls each of two ranks queues back to back.
const calls = 8

// pair is two ranks of one process, as hipfabric's staged path has them, and the host between them: the wire.
type pair struct {
	p           *probe
	n           int
	s           [2]stream
	ready, done [2]word
	in, out     [2]pinned   // a call's bytes down and up
	dev, result [2]onDevice // all calls' bytes
}

func (p *probe) pair(n int) (*pair, error) {
	x := &pair{p: p, n: n}
	for r := range 2 {
		var err error
		if x.s[r], err = p.plain(); err != nil {
			return nil, err
		}
		x.ready[r], x.done[r] = p.word(), p.word()
		if x.in[r], err = p.hostBytes(n); err != nil {
			return nil, err
		}
		if x.out[r], err = p.hostBytes(n); err != nil {
			return nil, err
		}
		if x.dev[r], err = p.deviceBytes(calls * n); err != nil {
			return nil, err
		}
		if x.result[r], err = p.deviceBytes(calls * n); err != nil {
			return nil, err
		}
		all, err := p.hostBytes(calls * n)
		if err != nil {
			return nil, err
		}
		fill(all.Bytes(), uint64(r+1))
		if err := errors.Join(p.copy(x.s[r], x.dev[r].Ptr(), all.Ptr(), calls*n), p.drained(x.s[r])); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// swap is the wire: each rank's bytes go to the other.
func (x *pair) swap() {
	copy(x.out[0].Bytes(), x.in[1].Bytes())
	copy(x.out[1].Bytes(), x.in[0].Bytes())
}

// check compares what arrived with what the other rank sent.
func (x *pair) check() error {
	for r := range 2 {
		got, err := x.p.hostBytes(calls * x.n)
		if err != nil {
			return err
		}
		if err := errors.Join(x.p.copy(x.s[r], got.Ptr(), x.result[r].Ptr(), calls*x.n), x.p.drained(x.s[r])); err != nil {
			return err
		}
		want := make([]byte, calls*x.n)
		fill(want, uint64(2-r))
		if at := mismatch(got.Bytes(), want); at >= 0 {
			return fmt.Errorf("rank %d has stale or wrong bytes from byte %d of call %d", r, at%x.n, at/x.n+1)
		}
	}
	return nil
}

// copyCaller is the design that hipfabric does not use: the copies on the stream that waits. It tells whether it hangs here.
func copyCaller(n int) func(*probe) (string, error) {
	return func(p *probe) (string, error) {
		x, err := p.pair(n)
		if err != nil {
			return "", err
		}
		queued := make(chan error, 1)
		go func() { queued <- x.queueAll() }() // a copy behind a wait may block its caller
		moved := uint64(0)
		for moved < calls {
			both, err := p.poll(p.o.Bound, func() (bool, error) {
				return x.ready[0].load() > moved && x.ready[1].load() > moved, nil
			})
			if err != nil {
				return "", errors.Join(err, x.letGo(queued))
			}
			if !both {
				return x.hung(moved, queued)
			}
			moved++
			x.swap()
			x.done[0].store(moved)
			x.done[1].store(moved)
		}
		if err := <-queued; err != nil {
			return "", err
		}
		if err := errors.Join(p.drained(x.s[0]), p.drained(x.s[1]), x.check()); err != nil {
			return "", err
		}
		return fmt.Sprintf("two ranks, %d calls of %d bytes back to back with their copies on the waiting stream: all done", calls, n), nil
	}
}

func (x *pair) queueAll() error {
	for r := range 2 {
		for k := range uint64(calls) {
			at := uintptr(k) * uintptr(x.n)
			err := errors.Join(
				x.p.copy(x.s[r], x.in[r].Ptr(), x.dev[r].Ptr()+at, x.n),
				x.p.write(x.s[r], x.ready[r], k+1),
				x.p.park(x.s[r], x.done[r], k+1),
				x.p.copy(x.s[r], x.result[r].Ptr()+at, x.out[r].Ptr(), x.n))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// hung ends the hang by host stores, and says that it was one.
func (x *pair) hung(moved uint64, queued <-chan error) (string, error) {
	blocked := len(queued) == 0
	stood := fmt.Sprintf("hung after %d of %d calls of %d bytes with copies on the waiting stream (ready words %d and %d)",
		moved, calls, x.n, x.ready[0].load(), x.ready[1].load())
	if blocked {
		stood += ", a copy call blocking its caller"
	}
	if err := x.letGo(queued); err != nil {
		return "", fmt.Errorf("%s, and host stores did not end it: %w", stood, err)
	}
	return "", known(reportCopies, "%s; host stores ended it", stood)
}

func (x *pair) letGo(queued <-chan error) error {
	x.done[0].store(calls)
	x.done[1].store(calls)
	all, err := x.p.poll(x.p.o.Bound, func() (bool, error) { return len(queued) == 1, nil })
	if err == nil && !all {
		err = fmt.Errorf("a call has not come back within %v", x.p.o.Bound)
	}
	if err != nil {
		return err
	}
	return errors.Join(<-queued, x.p.drained(x.s[0]), x.p.drained(x.s[1]))
}

// copyOwn is the design that hipfabric uses: the waiting streams have words only, copies run on a stream of their own.
func copyOwn(n int) func(*probe) (string, error) {
	return func(p *probe) (string, error) {
		x, err := p.pair(n)
		if err != nil {
			return "", err
		}
		proxy, err := p.own()
		if err != nil {
			return "", err
		}
		e, err := p.event()
		if err != nil {
			return "", err
		}
		for r := range 2 {
			for k := range uint64(calls) {
				if err := errors.Join(p.write(x.s[r], x.ready[r], k+1), p.park(x.s[r], x.done[r], k+1)); err != nil {
					return "", err
				}
			}
		}
		for k := range uint64(calls) {
			at := uintptr(k) * uintptr(n)
			for r := range 2 {
				if err := p.reaches(x.ready[r], k+1); err != nil {
					return "", fmt.Errorf("call %d, the ready word of rank %d: %w", k+1, r, err)
				}
			}
			err := errors.Join(
				p.copy(proxy, x.in[0].Ptr(), x.dev[0].Ptr()+at, n), p.copy(proxy, x.in[1].Ptr(), x.dev[1].Ptr()+at, n),
				e.Record(proxy.Stream), p.passed(e))
			if err != nil {
				return "", fmt.Errorf("call %d, on its way down: %w", k+1, err)
			}
			x.swap()
			err = errors.Join(
				p.copy(proxy, x.result[0].Ptr()+at, x.out[0].Ptr(), n), p.copy(proxy, x.result[1].Ptr()+at, x.out[1].Ptr(), n),
				e.Record(proxy.Stream), p.passed(e))
			if err != nil {
				return "", fmt.Errorf("call %d, on its way up: %w", k+1, err)
			}
			x.done[0].store(k + 1)
			x.done[1].store(k + 1)
		}
		if err := errors.Join(p.drained(x.s[0]), p.drained(x.s[1]), x.check()); err != nil {
			return "", err
		}
		return fmt.Sprintf("two ranks, %d calls of %d bytes back to back with their copies on %s: all done", calls, n, proxy.name), nil
	}
}
