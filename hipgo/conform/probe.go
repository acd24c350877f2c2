package conform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/hipgo"
)

// probe is what one check works with: streams, words and memory that go away with it, and a list of what it parked.
type probe struct {
	d     *hipgo.Device
	o     Options
	calls runtimeCalls
	ctx   context.Context

	mu      sync.Mutex // the runner reads these while the check may be inside a call
	inside  string     // the call
	parked  []park
	streams []stream
	left    bool // streams that never ended

	words   *hipgo.HostBuffer
	used    int
	events  []hipgo.Event
	buffers []io.Closer
}

// park is a wait that was queued, and the value that a host stores to end it.
type park struct {
	on      string
	word    word
	what    string
	release uint64
}

type stream struct {
	hipgo.Stream
	name string
}

// word is 64 bits of pinned memory on a cache line of their own.
type word struct {
	words hipgo.Words
	index int
}

func (w word) addr() uintptr  { return w.words.Addr(w.index) }
func (w word) load() uint64   { return w.words.Load(w.index) }
func (w word) store(v uint64) { w.words.Store(w.index, v) }
func (w word) String() string { return fmt.Sprintf("word %d", w.index/lineWords) }

const (
	lineWords = 8
	wordLines = 512
	allBits   = ^uint64(0)
)

// run runs f and takes down what it left, on the same goroutine.
func (p *probe) run(ctx context.Context, f func(*probe) (string, error)) (seen string, err error) {
	p.ctx = ctx
	if p.words, err = p.d.HostMalloc(wordLines * lineWords * 8); err != nil {
		return "", err
	}
	seen, err = f(p)
	if left := p.close(); left != nil {
		err = errors.New(oneLine(seen, err) + "; and then: " + left.Error()) // a failure, whatever the check itself made of it
	}
	return seen, err
}

func (p *probe) word() word {
	if p.used++; p.used > wordLines {
		p.used = 1
	}
	return word{p.words.Words(), (p.used - 1) * lineWords}
}

func (p *probe) keep(s hipgo.Stream, err error, name string) (stream, error) {
	if err != nil {
		return stream{}, fmt.Errorf("%s stream: %w", name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := stream{s, fmt.Sprintf("%s stream %d", name, len(p.streams)+1)}
	p.streams = append(p.streams, kept)
	return kept, nil
}

// plain is a stream as an engine makes them: non-blocking, of normal priority.
func (p *probe) plain() (stream, error) {
	s, err := p.calls.stream(p)
	return p.keep(s, err, "plain")
}

func (p *probe) masked() (stream, error) {
	s, err := p.d.NewStreamCUMask(nil)
	return p.keep(s, err, "CU-mask")
}

// own is the stream on which a proxy's copies run: with a hardware queue of its own where there is such a thing.
func (p *probe) own() (stream, error) {
	s, err := p.masked()
	if errors.Is(err, errors.ErrUnsupported) {
		return p.plain()
	}
	return s, err
}

func (p *probe) hostBytes(n int) (*hipgo.HostBuffer, error) {
	b, err := p.d.HostMalloc(n)
	if err == nil {
		p.closeLater(b)
	}
	return b, err
}

func (p *probe) deviceBytes(n int) (*hipgo.Buffer, error) {
	b, err := p.d.Malloc(n)
	if err == nil {
		p.closeLater(b)
	}
	return b, err
}

func (p *probe) closeLater(c io.Closer) {
	p.mu.Lock()
	p.buffers = append(p.buffers, c)
	p.mu.Unlock()
}

// wait queues a wait for the device, and remembers how a host ends it.
func (p *probe) wait(s stream, bits int, w word, v uint64, c hipgo.Condition, mask uint64) error {
	release := v
	switch c {
	case hipgo.ConditionGte: // little more, since CUDA compares cyclically, but not what another stream may have written
		release = max(v, v+1)
	case hipgo.ConditionAnd:
		release = allBits
	case hipgo.ConditionNor:
		release = 0
	}
	p.remember(s, w, fmt.Sprintf("%s %#x, mask %#x, %d bits", condition(c), v, mask, bits), release)
	defer p.within("a wait on " + s.name)()
	return p.calls.wait(s.Stream, bits, w.addr(), v, c, mask)
}

func condition(c hipgo.Condition) string {
	switch c {
	case hipgo.ConditionGte:
		return "is at least"
	case hipgo.ConditionEq:
		return "equals"
	case hipgo.ConditionAnd:
		return "has a bit of"
	case hipgo.ConditionNor:
		return "has a bit clear beside"
	}
	return fmt.Sprintf("meets condition %d of", c)
}

// remember comes before the call that parks: that call may block too.
func (p *probe) remember(s stream, w word, what string, release uint64) {
	p.mu.Lock()
	p.parked = append(p.parked, park{s.name, w, what, release})
	p.mu.Unlock()
}

// park is the usual wait: until the word has reached v.
func (p *probe) park(s stream, w word, v uint64) error {
	return p.wait(s, 64, w, v, hipgo.ConditionGte, allBits)
}

func (p *probe) write(s stream, w word, v uint64) error {
	defer p.within("a write on " + s.name)()
	return p.calls.write(s.Stream, 64, w.addr(), v)
}

func (p *probe) copy(s stream, dst, src uintptr, n int) error {
	defer p.within(fmt.Sprintf("a copy of %d bytes on %s", n, s.name))()
	return p.calls.copy(s.Stream, dst, src, n)
}

// within says for the runner's report which call is under way, until the returned function is called.
func (p *probe) within(call string) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside = call
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.inside = ""
	}
}

// poll asks until f says yes; false: not within d.
func (p *probe) poll(d time.Duration, f func() (bool, error)) (bool, error) {
	deadline := time.Now().Add(d)
	tick := time.NewTicker(50 * time.Microsecond)
	defer tick.Stop()
	for {
		if yes, err := f(); yes || err != nil {
			return yes, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			return false, context.Cause(p.ctx)
		}
	}
}

// drained waits until s has done all that was queued on it.
func (p *probe) drained(s stream) error {
	yes, err := p.poll(p.o.Bound, s.Query)
	if err == nil && !yes {
		err = fmt.Errorf("%s has not ended within %v", s.name, p.o.Bound)
	}
	return err
}

// stays checks that s does not end while it should be parked.
func (p *probe) stays(s stream) error {
	return p.never(s.name+" ended though it should wait", s.Query)
}

// never gives f some time to say yes, which is the failure.
func (p *probe) never(failure string, f func() (bool, error)) error {
	yes, err := p.poll(p.o.Settle, f)
	if err == nil && yes {
		err = errors.New(failure)
	}
	return err
}

// reaches waits until the host sees v in w.
func (p *probe) reaches(w word, v uint64) error {
	yes, err := p.poll(p.o.Bound, func() (bool, error) { return w.load() == v, nil })
	if err == nil && !yes {
		err = fmt.Errorf("%v is %#x after %v, not %#x", w, w.load(), p.o.Bound, v)
	}
	return err
}

func (p *probe) describeParked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text []string
	if p.inside != "" {
		text = append(text, "the host in "+p.inside)
	}
	for i, k := range p.parked {
		if slices.ContainsFunc(p.parked[i+1:], func(later park) bool { return later.on == k.on && later.word.addr() == k.word.addr() }) {
			continue
		}
		text = append(text, fmt.Sprintf("%s until %v %s; it is %#x", k.on, k.word, k.what, k.word.load()))
	}
	return text
}

// release stores what ends each wait. Waits on one word may want different values: each call stores one after the other.
func (p *probe) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.parked {
		k.word.store(k.release)
	}
}

// waitReleasing releases all over again until ended closes; false: not within the bound.
func (p *probe) waitReleasing(ended <-chan struct{}) bool {
	deadline := time.NewTimer(patience * p.o.Bound)
	defer deadline.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		p.release()
		select {
		case <-ended:
			return true
		case <-deadline.C:
			return false
		case <-again.C:
		}
	}
}

// close releases everything parked, and frees once no stream has work left: memory that the device may still touch is
// left, and said to be.
func (p *probe) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.o.Bound)
	defer cancel()
	p.ctx = ctx
	var errs []error
	for _, s := range p.streams {
		done, err := p.poll(p.o.Bound, func() (bool, error) {
			p.release()
			return s.Query()
		})
		if !done && err == nil || errors.Is(err, context.DeadlineExceeded) {
			p.left = true
			return fmt.Errorf("%s has not ended %v after everything parked was released; it and its memory are left", s.name, p.o.Bound)
		}
	}
	for _, s := range p.streams {
		errs = append(errs, s.Close())
	}
	for _, e := range p.events {
		errs = append(errs, e.Close())
	}
	p.mu.Lock()
	p.parked = nil // the runner may be releasing, and the words end here
	p.mu.Unlock()
	for _, b := range append(p.buffers, p.words) {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}
