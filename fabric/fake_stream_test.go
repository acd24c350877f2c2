package fabric_test

import (
	"context"
	"errors"
	"sync"

	"github.com/hipfabric/hipfabric/fabric"
)

// fakeStream is a StreamTransport that moves nothing.
type fakeStream struct {
	rank, world int
	queue       func(fabric.Stream, *fabric.Call) error // nil: good
	capture     error
	sync        func(context.Context, fabric.Stream) error // nil: good
	noMemory    error
	records     []fabric.Record
	progress    fabric.Progress
	plan        fakePlan

	mu     sync.Mutex
	causes []error
	queued int
	closes int
}

func newFakeStream(rank, world int) *fakeStream { return &fakeStream{rank: rank, world: world} }

func (f *fakeStream) Kind() string              { return "fake" }
func (f *fakeStream) Rank() int                 { return f.rank }
func (f *fakeStream) World() int                { return f.world }
func (f *fakeStream) Ordered() bool             { return true }
func (f *fakeStream) Waiting() uint64           { return 0b101 }
func (f *fakeStream) Progress() fabric.Progress { return f.progress }
func (f *fakeStream) Records() []fabric.Record  { return f.records }
func (f *fakeStream) Stats() fabric.Stats       { return fabric.Stats{Calls: 5, Refused: 2} }

func (f *fakeStream) Queue(s fabric.Stream, c *fabric.Call) error {
	f.queued++
	if f.queue == nil {
		return nil
	}
	return f.queue(s, c)
}

func (f *fakeStream) Capture(fabric.Stream) (fabric.PlanTransport, error) {
	if f.capture != nil {
		return nil, f.capture
	}
	return &f.plan, nil
}

func (f *fakeStream) Sync(ctx context.Context, s fabric.Stream) error {
	if f.sync == nil {
		return nil
	}
	return f.sync(ctx, s)
}

func (f *fakeStream) Alloc(n int) (fabric.DeviceMemory, error) {
	if f.noMemory != nil {
		return nil, f.noMemory
	}
	return deviceMemory(n), nil
}

func (f *fakeStream) Register(host []byte, _ fabric.DevPtr) (fabric.DeviceMemory, error) {
	if f.noMemory != nil {
		return nil, f.noMemory
	}
	return deviceMemory(len(host)), nil
}

func (f *fakeStream) Abort(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.causes = append(f.causes, cause)
}

func (f *fakeStream) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closes++
	return nil
}

func (f *fakeStream) abortedWith() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.causes) == 0 {
		return nil
	}
	return f.causes[0]
}

type deviceMemory int

func (m deviceMemory) Device() fabric.DevPtr { return 0x1000 }
func (m deviceMemory) Len() int              { return int(m) }
func (m deviceMemory) Bytes() []byte         { return nil }
func (m deviceMemory) Close() error          { return nil }

// fakePlan counts what it is asked, and fails as the test says.
type fakePlan struct {
	ends, releases int
	err            error
}

func (p *fakePlan) End() error     { p.ends++; return p.err }
func (p *fakePlan) Release() error { p.releases++; return p.err }

var errNoPages = errors.New("no pages")
