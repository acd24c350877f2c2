package fabric_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a Transport that moves nothing: a call ends when the test says so, at once by default.
type fake struct {
	rank, world int
	refuse      error                          // what Begin gives
	noMemory    error                          // what Alloc gives
	poll        func() (bool, error)           // nil: done
	wait        func(idle time.Duration) error // nil: as poll
	seen        func(*fabric.Call)             // at each Begin
	waiting     uint64
	progress    uint64
	stalls      []time.Duration // what Stall was given

	begins  atomic.Int64
	closes  atomic.Int64
	aborted chan struct{}
	once    sync.Once
	mu      sync.Mutex
	causes  []error // of Abort
}

func newFake(rank, world int) *fake {
	return &fake{rank: rank, world: world, aborted: make(chan struct{})}
}

func (f *fake) Kind() string    { return "fake" }
func (f *fake) Rank() int       { return f.rank }
func (f *fake) World() int      { return f.world }
func (f *fake) Ordered() bool   { return true }
func (f *fake) Waiting() uint64 { return f.waiting }
func (f *fake) Close() error    { f.closes.Add(1); return nil }

func (f *fake) Stats() fabric.TransportStats { return fabric.TransportStats{Kind: "fake", Parks: 7} }

func (f *fake) Alloc(n int) (fabric.Memory, error) {
	if f.noMemory != nil {
		return nil, f.noMemory
	}
	return memory(make([]byte, n)), nil
}

type memory []byte

func (m memory) Bytes() []byte { return m }
func (m memory) Close() error  { return nil }

func (f *fake) Begin(c *fabric.Call) (fabric.Pending, error) {
	f.begins.Add(1)
	if f.seen != nil {
		f.seen(c)
	}
	if f.refuse != nil {
		return nil, f.refuse
	}
	return f, nil
}

func (f *fake) Poll() (bool, error) {
	if f.poll == nil {
		return true, nil
	}
	return f.poll()
}

func (f *fake) Progress() uint64 { return f.progress }

func (f *fake) Stall(idle time.Duration) error {
	f.stalls = append(f.stalls, idle)
	return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: 1, From: -1, Text: "nothing moved"}
}

func (f *fake) Wait(idle time.Duration) error {
	if f.wait != nil {
		return f.wait(idle)
	}
	_, err := f.Poll()
	return err
}

func (f *fake) Abort(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.causes = append(f.causes, cause)
	f.once.Do(func() { close(f.aborted) })
}

func (f *fake) abortedWith() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.causes) == 0 {
		return nil
	}
	return f.causes[0]
}

// untilAborted is a wait that only Abort ends.
func (f *fake) untilAborted(time.Duration) error {
	<-f.aborted
	return f.abortedWith()
}

// arbiter is a fabric.Arbiter that the test settles.
type arbiter struct {
	mu      sync.Mutex
	cause   *fabric.Cause
	verdict *fabric.Cause // what Report settles; nil: the report itself
	reports []error
}

func (a *arbiter) Report(local error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reports = append(a.reports, local)
	if a.cause == nil {
		a.cause = fabric.CauseOf(local)
		if a.verdict != nil {
			a.cause = a.verdict
		}
	}
	return a.cause
}

func (a *arbiter) Cause() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cause == nil {
		return nil
	}
	return a.cause
}

func (a *arbiter) settle(c *fabric.Cause) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cause = c
}

// walked fails the test if a field of err is blank, and gives it as an OpError.
func walked(t *testing.T, err error) *fabric.OpError {
	t.Helper()
	require.NoError(t, fabrictest.WalkError(err))
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	return op
}
