package fabrictest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// RunStream holds a path for device memory to what only a path that queues can promise: beside Run or RunPairwise, over
// Subjects of Stream.
func RunStream(t *testing.T, open Opener) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"held", testHeld}, {"laps", testLaps}, {"full-ring", testFullRing}, {"device-lengths", testDeviceLengths},
		{"device-lengths-wrong", testWrongDeviceLengths}, {"failure-among-queued", testFailureAmongQueued},
		{"desync-among-queued", testDesyncAmongQueued}, {"abort-while-parked", testAbortWhileParked},
		{"close-while-parked", testCloseWhileParked}, {"context", testContext},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open) })
	}
}

// ringCalls is how many calls a group queues before one waits.
const ringCalls = 256

// openStreams opens a world of streams.
func openStreams(t *testing.T, open Opener, world int, o SubjectOptions) []*stream {
	t.Helper()
	var streams []*stream
	for _, s := range openWorld(t, open, world, o) {
		one, ok := s.(*stream)
		if !ok {
			t.Fatalf("%T is no Subject of fabrictest.Stream", s)
		}
		streams = append(streams, one)
	}
	return streams
}

func subjectsOf(streams []*stream) []Subject {
	var all []Subject
	for _, s := range streams {
		all = append(all, s)
	}
	return all
}

// holdable skips the test where streams cannot be held.
func holdable(t *testing.T, s *stream) {
	t.Helper()
	if s.d.Hold == nil {
		t.Skip("streams of this device cannot be held")
	}
}

// waiting is one rank's queued call with memory of its own.
type waiting struct {
	valueCase
	share
	s       *stream
	in, out Buffer
	image   []byte // out and its guards, as they are before the call
}

const waitingOut = guardBytes

func prepare(s *stream, c valueCase, src *source) (*waiting, error) {
	w := &waiting{valueCase: c, share: c.shares(src)[s.Rank()], s: s}
	w.image = c.blank(len(w.want) + 2*guardBytes)
	var err error
	if w.out, err = s.Alloc(len(w.image)); err != nil {
		return nil, err
	}
	if w.in, err = s.Alloc(len(w.share.in)); err != nil {
		return nil, err
	}
	if w.want != nil {
		w.call.Out = w.out.Slice(waitingOut, waitingOut+len(w.want))
	}
	if w.share.in != nil {
		w.call.In = w.in
		if w.at >= 0 {
			w.call.In = w.call.Out.Slice(w.at, w.at+len(w.share.in))
		}
	}
	return w, s.Upload(w.out, w.image)
}

// give uploads what the call is to send.
func (w *waiting) give() error {
	if w.call.In == nil {
		return nil
	}
	return w.s.Upload(w.call.In, w.share.in)
}

func (w *waiting) queue() error {
	if w.idle {
		return nil
	}
	if err := w.s.Do(w.call); err != nil {
		return fmt.Errorf("%v: %w", w.valueCase, err)
	}
	return nil
}

// untouched says whether out is still as it was.
func (w *waiting) untouched() error { return w.compare(w.image, "before its stream ran") }

// came says whether out is what it should be.
func (w *waiting) came() error {
	if w.idle {
		return w.untouched()
	}
	want := append([]byte(nil), w.image...)
	copy(want[waitingOut:], w.want)
	return w.compare(want, "afterwards")
}

func (w *waiting) compare(want []byte, when string) error {
	got := make([]byte, len(want))
	if err := w.s.Download(got, w.out); err != nil {
		return err
	}
	if err := differ("out "+when, got, want, waitingOut, len(w.want)); err != nil {
		return fmt.Errorf("%v: %w", w.valueCase, err)
	}
	return nil
}

// oneOfEach is a case of every operation, of this size.
func oneOfEach(world, index, size int) []valueCase {
	var all []valueCase
	for _, op := range fabric.Ops() {
		c := valueCase{index: index + len(all), world: world, op: op, size: size}
		if op.Reduces() {
			c.dtype, c.reduce = fabric.F32, fabric.Sum
		}
		all = append(all, c)
	}
	return all
}

// testHeld queues on held streams, and only then puts the input there: what is moved is what is there when the stream runs.
func testHeld(t *testing.T, open Opener) {
	for world := 2; world <= 4; world++ {
		streams := openStreams(t, open, world, SubjectOptions{Group: "held", Timeout: valuesTimeout})
		holdable(t, streams[0])
		src := &source{}
		together(t, world, time.Minute, func(rank int) error {
			s := streams[rank]
			release, err := s.d.Hold()
			if err != nil {
				return err
			}
			defer release()
			var calls []*waiting
			for _, size := range []int{2, 5} {
				for _, c := range oneOfEach(world, len(calls), size) {
					w, err := prepare(s, c, src)
					if err != nil {
						return err
					}
					calls = append(calls, w)
					if err := w.queue(); err != nil {
						return err
					}
				}
			}
			for _, w := range calls {
				if err := errors.Join(w.untouched(), w.give()); err != nil {
					return err
				}
			}
			if r := s.c.Records(); len(r) > 0 {
				return fmt.Errorf("%d calls have run on a held stream, the last: %v", len(r), r[len(r)-1])
			}
			release()
			if err := s.Sync(); err != nil {
				return err
			}
			for _, w := range calls {
				if err := w.came(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// testLaps goes several times round whatever ring the path keeps, with nothing waited for in between, and with payloads of
// zeros, which tell nothing from memory that was never written.
func testLaps(t *testing.T, open Opener) {
	const laps = 3*ringCalls + 17
	for world := 2; world <= 3; world++ {
		streams := openStreams(t, open, world, SubjectOptions{Group: "laps", Timeout: valuesTimeout})
		sources := []*source{{}, {zero: true}}
		together(t, world, 2*time.Minute, func(rank int) error {
			s := streams[rank]
			var calls []*waiting
			for size := 0; len(calls) < laps; size++ {
				for _, c := range oneOfEach(world, len(calls), size%3) {
					w, err := prepare(s, c, sources[len(calls)%2])
					if err != nil {
						return err
					}
					calls = append(calls, w)
				}
			}
			release := func() {}
			if s.d.Hold != nil {
				var err error
				if release, err = s.d.Hold(); err != nil {
					return err
				}
			}
			defer release()
			for i, w := range calls {
				if err := errors.Join(w.give(), w.queue()); err != nil {
					return fmt.Errorf("call %d: %w", i, err)
				}
				if i == ringCalls/2 {
					release()
				}
			}
			if err := s.Sync(); err != nil {
				return err
			}
			for i, w := range calls {
				if err := w.came(); err != nil {
					return fmt.Errorf("call %d: %w", i, err)
				}
			}
			return nil
		})
	}
}

// testFullRing queues as many calls as a group can on a held stream, and some more, which wait for it.
func testFullRing(t *testing.T, open Opener) {
	const world, more = 2, 40
	streams := openStreams(t, open, world, SubjectOptions{Group: "full", Timeout: valuesTimeout})
	holdable(t, streams[0])
	together(t, world, time.Minute, func(rank int) error {
		s := streams[rank]
		release, err := s.d.Hold()
		if err != nil {
			return err
		}
		defer release()
		var queued atomic.Int32
		full, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for range ringCalls + more {
				if err := s.Do(Call{Op: fabric.Barrier}); err != nil {
					ended <- err
					return
				}
				if queued.Add(1) == ringCalls {
					close(full)
				}
			}
			ended <- nil
		}()
		select {
		case <-full:
		case err := <-ended:
			return fmt.Errorf("after %d of %d calls: %w", queued.Load(), ringCalls, err)
		case <-time.After(valuesTimeout):
			return fmt.Errorf("%d calls were queued on a held stream; %d are due before one waits", queued.Load(), ringCalls)
		}
		release()
		if err := <-ended; err != nil {
			return err
		}
		return s.Sync()
	})
}
