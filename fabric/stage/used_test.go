package stage_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// probe is a driver that a test looks into. Each of its functions may be nil.
type probe struct {
	*hipgo.Seam
	launch   func(nth int32)
	record   func(stream uintptr)
	free     func()
	launches atomic.Int32
	freed    atomic.Int32 // calls that free memory
}

func (p *probe) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	if n := p.launches.Add(1); p.launch != nil {
		p.launch(n)
	}
	return p.Seam.Launch(stream, function, blocks, threads, args)
}

func (p *probe) Record(stream, event uintptr) error {
	if p.record != nil {
		p.record(stream)
	}
	return p.Seam.Record(stream, event)
}

func (p *probe) FreeHost(mem []byte) error {
	p.freeing()
	return p.Seam.FreeHost(mem)
}

func (p *probe) FreeDevice(at uintptr) error {
	p.freeing()
	return p.Seam.FreeDevice(at)
}

func (p *probe) freeing() {
	if p.freed.Add(1); p.free != nil {
		p.free()
	}
}

// openProbe opens a group of one rank on a software device with a probe.
func openProbe(t *testing.T, gate stage.Gate, p *probe) *hipRank {
	w := hiptest.Start(t, hiptest.Settings{Devices: 1})
	return openHIP(t, w, 1, stage.Config{Gate: gate, PartBytes: 64}, func(_ int, c *stage.Config) {
		p.Seam = c.Driver.(*hipgo.Seam)
		c.Driver = p
	})[0]
}

// soon is long for what nothing holds up.
const soon = 300 * time.Millisecond

// within runs f in a goroutine of its own, and says whether it ended in time.
func within(limit time.Duration, f func()) (ended chan struct{}, inTime bool) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-ended:
		return ended, true
	case <-late.C:
		return ended, false
	}
}

// A Wait beside a Queue that has not laid out its call says nothing of that call: Close waits for its stream.
func TestAWaitBesideAQueueDoesNotForgetTheStream(t *testing.T) {
	t.Run("words", func(t *testing.T) {
		inside, goOn := make(chan struct{}), make(chan struct{})
		ranks := openRanks(t, 1, func(_ int, _ *stage.Config, d *double) {
			d.before = func(method string, _ int) {
				if method == "WriteWait" {
					close(inside)
					<-goOn
				}
			}
		})
		r := ranks[0]
		queued, _ := within(0, func() { assert.NoError(t, r.Barrier(r.s)) })
		<-inside
		require.NoError(t, r.path.Sync(t.Context(), r.s))
		release := r.d.hold(uintptr(r.s))
		close(goOn)
		<-queued
		closed, inTime := within(soon, func() { assert.NoError(t, r.path.Close()) })
		assert.False(t, inTime, "closed while its stream still has a write and a wait before it")
		release()
		<-closed
	})
	t.Run("kernels", func(t *testing.T) {
		p, inside, goOn := &probe{}, make(chan struct{}), make(chan struct{})
		p.launch = func(nth int32) {
			if nth == 2 {
				close(inside)
				<-goOn
			}
		}
		r := openProbe(t, stage.Kernels, p)
		defer done(t, []*hipRank{r})
		in, err := r.alloc(300)
		require.NoError(t, err)
		queued, _ := within(0, func() { assert.NoError(t, r.AllReduce(r.stream(), in, in, 300, fabric.U8, fabric.Sum)) })
		<-inside
		require.NoError(t, r.path.Sync(t.Context(), r.stream()))
		release, err := r.hold()
		require.NoError(t, err)
		close(goOn)
		<-queued
		before := p.freed.Load()
		closed, inTime := within(soon, func() { assert.NoError(t, r.path.Close()) })
		assert.False(t, inTime)
		assert.Equal(t, before, p.freed.Load(), "freed while kernels before its stream will still use it")
		release()
		<-closed
	})
}

// A graph is launched without a word to the group, which all the same waits for the streams that its calls came from.
func TestCloseWaitsForAReplay(t *testing.T) {
	p := &probe{}
	r := openProbe(t, stage.Kernels, p)
	defer done(t, []*hipRank{r})
	in, err := r.alloc(64)
	require.NoError(t, err)
	graphs := newGraphs(t, r, in)
	exec, released := graphs(), graphs()
	require.NoError(t, exec.Launch(r.s))
	require.NoError(t, r.Wait(t.Context(), r.stream()))
	require.NoError(t, released.plan.Release())
	require.NoError(t, r.Wait(t.Context(), r.stream()), "which may forget the stream for the one plan, not for the other")
	release, err := r.hold()
	require.NoError(t, err)
	require.NoError(t, exec.Launch(r.s))
	closed, inTime := within(soon, func() { assert.NoError(t, r.path.Close()) })
	assert.False(t, inTime)
	assert.Zero(t, p.freed.Load(), "freed while a graph's kernels will still use it")
	release()
	<-closed
	for _, g := range []*captured{exec, released} {
		require.NoError(t, errors.Join(g.Exec.Close(), g.graph.Close()))
	}
}

// captured is a graph of one call.
type captured struct {
	*hipgo.Exec
	graph *hipgo.Graph
	plan  *fabric.Plan
}

func newGraphs(t *testing.T, r *hipRank, in fabric.DevPtr) func() *captured {
	return func() *captured {
		t.Helper()
		plan, err := r.Capture(r.stream())
		require.NoError(t, err)
		require.NoError(t, r.s.BeginCapture(hipgo.CaptureRelaxed))
		require.NoError(t, r.AllReduce(r.stream(), in, in, 64, fabric.U8, fabric.Sum))
		graph, err := r.s.EndCapture()
		require.NoError(t, err)
		require.NoError(t, plan.End())
		exec, err := graph.Instantiate()
		require.NoError(t, err)
		return &captured{exec, graph, plan}
	}
}

// A Close during a capture of the engine's puts nothing into it.
func TestCloseLeavesACaptureAlone(t *testing.T) {
	p := &probe{}
	var capturing atomic.Bool
	r := openProbe(t, stage.Words, p)
	defer done(t, []*hipRank{r})
	p.record = func(stream uintptr) {
		assert.False(t, capturing.Load() && stream == r.s.Raw(), "an event of ours in the engine's graph")
	}
	require.NoError(t, r.Barrier(r.stream()))
	require.NoError(t, r.s.Synchronize(t.Context()))
	require.NoError(t, r.s.BeginCapture(hipgo.CaptureRelaxed))
	capturing.Store(true)
	closed, inTime := within(soon, func() { assert.NoError(t, r.path.Close()) })
	assert.False(t, inTime)
	capturing.Store(false)
	graph, err := r.s.EndCapture()
	require.NoError(t, err)
	<-closed
	require.NoError(t, graph.Close())
}

// After a failure a wait ends when the stream's kernels have, which copy by themselves; or it says that they may still run.
func TestAWaitOfAFailedGroupIsForTheKernelsToo(t *testing.T) {
	for name, lets := range map[string]bool{"they end": true, "they do not": false} {
		t.Run(name, func(t *testing.T) {
			p, asked := &probe{}, make(chan struct{}, 100)
			r := openProbe(t, stage.Kernels, p)
			defer done(t, []*hipRank{r})
			p.record = func(stream uintptr) {
				if stream == r.s.Raw() {
					asked <- struct{}{}
				}
			}
			in, err := r.alloc(64)
			require.NoError(t, err)
			release, err := r.hold()
			require.NoError(t, err)
			defer release()
			require.NoError(t, r.AllReduce(r.stream(), in, in, 64, fabric.U8, fabric.Sum))
			r.Abort(errors.New("enough"))
			waited := make(chan error, 1)
			go func() { waited <- r.Wait(t.Context(), r.stream()) }()
			select {
			case <-asked:
			case err := <-waited:
				require.Fail(t, "not waited for the kernels", "%v", err)
			}
			if lets {
				release()
				err := <-waited
				require.ErrorIs(t, err, fabric.ErrAborted)
				require.NotErrorIs(t, err, fabric.ErrDevice)
				passed, err := r.s.Query()
				require.NoError(t, err)
				assert.True(t, passed)
				return
			}
			err = <-waited
			require.ErrorIs(t, err, fabric.ErrDevice)
			require.ErrorContains(t, err, "may still touch their buffers")
		})
	}
}

// HIP frees memory once all streams of the device have run dry: a group is closed beside one whose call is under way.
func TestGroupsOfADeviceCloseInAnyOrder(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 2})
			proxy, err := stage.NewProxy(w.Device(0).Seam())
			require.NoError(t, err)
			share := func(rank int, c *stage.Config) {
				if rank == 0 {
					c.Proxy = proxy
				}
			}
			other := openHIP(t, w, 2, stage.Config{Gate: gate}, share)
			first := openHIP(t, w, 2, stage.Config{Gate: gate}, share)
			require.NoError(t, first[0].Barrier(first[0].stream()))
			require.NoError(t, first[1].Barrier(first[1].stream()))
			require.NoError(t, first[0].Wait(t.Context(), first[0].stream()))
			in, err := other[0].alloc(192)
			require.NoError(t, err)
			require.NoError(t, other[0].AllGather(other[0].stream(), in+64, in, 64))
			require.NoError(t, first[0].Close())
			in, err = other[1].alloc(192)
			require.NoError(t, err)
			require.NoError(t, other[1].AllGather(other[1].stream(), in+64, in, 64))
			for _, r := range other {
				require.NoError(t, r.Wait(t.Context(), r.stream()))
			}
			done(t, first)
			done(t, other)
			require.NoError(t, proxy.Close())
		})
	}
}

// What the driver says after Close has returned is logged.
func TestAFreeThatFailsLaterIsLogged(t *testing.T) {
	var log lines
	goOn := make(chan struct{})
	r := openRanks(t, 1, func(_ int, c *stage.Config, d *double) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		d.before = func(method string, _ int) {
			if method == "FreeHost" {
				<-goOn
			}
		}
		d.fault = func(method string, nth int) error {
			if method == "FreeHost" && nth == 1 {
				return errors.New("hipErrorUnknown")
			}
			return nil
		}
	})[0]
	require.NoError(t, r.path.Close())
	assert.Contains(t, log.String(), "is freed later")
	close(goOn)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "hipErrorUnknown") }, 5*time.Second, time.Millisecond)
	r.d.mu.Lock()
	r.d.blocks = nil // one is lost
	r.d.mu.Unlock()
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
