package stage_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	graphCalls  = 188 // of a decode step
	graphBlocks = 24  // int32 of each block
)

// steps are calls of one decode step, in one memory, whose result depends on each of them and on what it began with.
type steps struct {
	r         *hipRank
	seed      int
	in, out   fabric.DevPtr
	all, vec  fabric.DevPtr
	exec      *hipgo.Exec
	graph     *hipgo.Graph
	plan      *fabric.Plan
	callBytes int
	mode      hipgo.CaptureMode
}

func newSteps(t *testing.T, r *hipRank, seed int) *steps {
	s := &steps{r: r, seed: seed, callBytes: 4 * graphBlocks, mode: hipgo.CaptureThreadLocal}
	for _, m := range []struct {
		p *fabric.DevPtr
		n int
	}{{&s.in, s.callBytes}, {&s.out, s.callBytes}, {&s.all, s.callBytes * r.World()}, {&s.vec, 4 * r.World()}} {
		p, err := r.alloc(m.n)
		require.NoError(t, err)
		*m.p = p
	}
	lengths := make([]byte, 0, 4*r.World())
	for range r.World() {
		lengths = binary.LittleEndian.AppendUint32(lengths, uint32(s.callBytes))
	}
	require.NoError(t, r.upload(s.vec, lengths))
	return s
}

// queue is the step: each call takes what the one before gave.
func (s *steps) queue() error {
	on := s.r.stream()
	for i := range graphCalls {
		var err error
		switch kind := (i + s.seed) % 5; {
		case i%47 == 46:
			err = s.r.AllGatherV(on, s.all, s.in, s.callBytes, uneven(s.r.World()))
		case kind < 2:
			err = s.r.AllReduce(on, s.out, s.in, graphBlocks, fabric.I32, fabric.Sum)
		case kind == 2:
			err = s.r.AllReduce(on, s.in, s.out, graphBlocks, fabric.I32, fabric.Max)
		case kind == 3:
			err = s.r.AllGather(on, s.all, s.in, s.callBytes)
		default:
			err = s.r.AllGatherVDevice(on, s.all, s.in, s.callBytes, s.vec)
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// uneven lengths need a list of pieces in the graph.
func uneven(world int) []int {
	lengths := make([]int, world)
	for r := range lengths {
		lengths[r] = 4 * (graphBlocks - 2*r)
	}
	return lengths
}

func (s *steps) capture() (err error) {
	if s.plan, err = s.r.Capture(s.r.stream()); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err = s.r.s.BeginCapture(s.mode); err != nil {
		return err
	}
	if err = s.queue(); err != nil {
		return err
	}
	if s.graph, err = s.r.s.EndCapture(); err != nil {
		return err
	}
	if err = s.plan.End(); err != nil {
		return err
	}
	s.exec, err = s.graph.Instantiate()
	return err
}

func (s *steps) release() error {
	if s.plan == nil {
		return nil
	}
	if err := s.exec.Close(); err != nil {
		return err
	}
	if err := s.graph.Close(); err != nil {
		return err
	}
	return s.plan.Release()
}

// launch runs the step once more: as a graph, or, on a rank that has none, eagerly.
func (s *steps) launch() error {
	if s.exec == nil {
		return s.queue()
	}
	return s.exec.Launch(s.r.s)
}

// expect computes what n steps make of seed's memory, on every rank.
type model struct {
	in, out [][]int32
	all     [][]int32
}

func newModel(world, seed int) *model {
	m := &model{}
	for r := range world {
		m.in, m.out = append(m.in, initial(r, seed)), append(m.out, make([]int32, graphBlocks))
		m.all = append(m.all, make([]int32, graphBlocks*world))
	}
	return m
}

func initial(rank, seed int) []int32 {
	v := make([]int32, graphBlocks)
	for i := range v {
		v[i] = int32(1 + i*3 + rank*17 + seed*5)
	}
	return v
}

func (m *model) step(seed int) {
	for i := range graphCalls {
		switch kind := (i + seed) % 5; {
		case i%47 == 46:
			for r := range m.all {
				for p, in := range m.in {
					copy(m.all[r][p*graphBlocks:], in[:graphBlocks-2*p])
				}
			}
		case kind < 2:
			m.reduce(m.out, m.in, func(a, b int32) int32 { return a + b })
		case kind == 2:
			m.reduce(m.in, m.out, func(a, b int32) int32 { return max(a, b) })
		default:
			for r := range m.all {
				for p, in := range m.in {
					copy(m.all[r][p*graphBlocks:], in)
				}
			}
		}
	}
}

func (m *model) reduce(to, from [][]int32, f func(a, b int32) int32) {
	sum := append([]int32(nil), from[0]...)
	for _, v := range from[1:] {
		for i := range sum {
			sum[i] = f(sum[i], v[i])
		}
	}
	for r := range to {
		copy(to[r], sum)
	}
}

// Three graphs run interleaved and four deep, which is more calls than the ring has slots, with eager calls between, and
// one is released and captured anew; a rank without graphs makes the same calls eagerly.
func TestCapturedStepsAreReplayed(t *testing.T) {
	const world, eager, rounds = 3, 2, 3
	w := hiptest.Start(t, hiptest.Settings{Devices: world, Capture: hiptest.CaptureRefuses})
	ranks := openHIP(t, w, world, stage.Config{Gate: stage.Kernels, PartBytes: 64, Timeout: 20 * time.Second}, nil)
	defer done(t, ranks)
	models := []*model{newModel(world, 0), newModel(world, 1), newModel(world, 2)}
	errs := make([]error, world)
	all := make([][]*steps, world)
	for r := range ranks {
		for seed := range models {
			all[r] = append(all[r], newSteps(t, ranks[r], seed))
			require.NoError(t, ranks[r].upload(all[r][seed].in, fabric.Bytes(initial(r, seed))))
			require.NoError(t, ranks[r].upload(all[r][seed].out, make([]byte, 4*graphBlocks)))
		}
	}
	var group sync.WaitGroup
	for r := range ranks {
		group.Go(func() { errs[r] = replay(t.Context(), ranks[r], all[r], r != eager, rounds) })
	}
	group.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	for seed, m := range models {
		for range rounds * 4 {
			m.step(seed)
		}
	}
	for r := range ranks {
		for seed, m := range models {
			in, out, gathered := make([]byte, 4*graphBlocks), make([]byte, 4*graphBlocks), make([]byte, 4*graphBlocks*world)
			require.NoError(t, ranks[r].download(in, all[r][seed].in))
			require.NoError(t, ranks[r].download(out, all[r][seed].out))
			require.NoError(t, ranks[r].download(gathered, all[r][seed].all))
			assert.Equal(t, fabric.Bytes(m.in[r]), in, "rank %d graph %d", r, seed)
			assert.Equal(t, fabric.Bytes(m.out[r]), out, "rank %d graph %d", r, seed)
			assert.Equal(t, fabric.Bytes(m.all[r]), gathered, "rank %d graph %d", r, seed)
		}
	}
}

func replay(ctx context.Context, r *hipRank, all []*steps, captured bool, rounds int) error {
	for _, s := range all {
		if captured {
			if err := s.capture(); err != nil {
				return fmt.Errorf("capture of graph %d: %w", s.seed, err)
			}
		}
	}
	for round := range rounds {
		for deep := range 4 {
			for _, s := range all {
				if err := s.launch(); err != nil {
					return fmt.Errorf("round %d: graph %d: %w", round, s.seed, err)
				}
			}
			if deep == 1 {
				if err := r.Barrier(r.stream()); err != nil {
					return err
				}
			}
		}
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		err := r.Wait(bounded, r.stream())
		cancel()
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if again := all[round%len(all)]; captured {
			if err := again.release(); err != nil {
				return err
			}
			if err := again.capture(); err != nil {
				return fmt.Errorf("capture of graph %d anew: %w", again.seed, err)
			}
		}
	}
	for _, s := range all {
		if err := s.release(); err != nil {
			return err
		}
	}
	return nil
}

func TestAGraphOfAReleasedPlanEndsTheGroupByName(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	ranks := openHIP(t, w, 2, stage.Config{Gate: stage.Kernels, Timeout: 5 * time.Second}, nil)
	defer done(t, ranks)
	one := newSteps(t, ranks[0], 0)
	one.mode = hipgo.CaptureGlobal
	require.NoError(t, one.capture())
	require.NoError(t, one.plan.Release())
	require.NoError(t, ranks[1].Barrier(ranks[1].stream()))
	require.NoError(t, one.exec.Launch(ranks[0].s))
	for i, r := range ranks {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := r.Wait(ctx, r.stream())
		cancel()
		require.ErrorIs(t, err, fabric.ErrAborted, "rank %d", i)
		require.ErrorContains(t, err, "a graph was launched whose Plan has been released")
		require.NoError(t, r.s.Synchronize(t.Context()), "no stream is parked")
	}
	require.NoError(t, one.exec.Launch(ranks[0].s), "poison: later launches do nothing")
	require.NoError(t, ranks[0].s.Synchronize(t.Context()))
	require.NoError(t, one.exec.Close())
	require.NoError(t, one.graph.Close())
}

func TestCapturesAreRefusedByName(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 1})
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		ranks := openHIP(t, w, 1, stage.Config{Gate: gate}, nil)
		r := ranks[0]
		if gate == stage.Words {
			_, err := r.Capture(r.stream())
			require.ErrorIs(t, err, fabric.ErrCapture)
			require.ErrorContains(t, err, "open the group with the kernels gate")
		}
		require.NoError(t, r.s.BeginCapture(hipgo.CaptureRelaxed))
		require.ErrorIs(t, r.Barrier(r.stream()), fabric.ErrCapture)
		require.ErrorIs(t, r.Wait(t.Context(), r.stream()), fabric.ErrCapture)
		if gate == stage.Kernels {
			_, err := r.Capture(r.stream())
			require.ErrorIs(t, err, fabric.ErrCapture)
		}
		g, err := r.s.EndCapture()
		require.NoError(t, err)
		require.NoError(t, g.Close())
		require.NoError(t, r.Check(), "nothing was queued")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		require.NoError(t, r.Barrier(r.stream()))
		require.NoError(t, r.Wait(ctx, r.stream()), "a call after it has its place")
		cancel()
		if gate == stage.Kernels {
			p, err := r.Capture(r.stream())
			require.NoError(t, err)
			_, err = r.Capture(r.stream())
			require.ErrorIs(t, err, fabric.ErrInvalid)
			require.NoError(t, p.Release())
		}
		done(t, ranks)
	}
}

func TestAGraphWithHalfACallEndsTheGroup(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ranks := openHIP(t, w, 1, stage.Config{Gate: stage.Kernels}, nil)
	r := ranks[0]
	p, err := r.alloc(64)
	require.NoError(t, err)
	plan, err := r.Capture(r.stream())
	require.NoError(t, err)
	require.NoError(t, r.s.BeginCapture(hipgo.CaptureRelaxed))
	require.NoError(t, w.Fail(hiptest.Fault{Call: "hipModuleLaunchKernel", Nth: 2, Code: 2}))
	require.ErrorIs(t, r.Broadcast(r.stream(), p, 64, 0), fabric.ErrCapture, "the stage is in the graph, its collect is not")
	graph, err := r.s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, plan.End())
	exec, err := graph.Instantiate()
	require.NoError(t, err)
	require.NoError(t, exec.Launch(r.s))
	require.Eventually(t, func() bool { return r.Check() != nil }, 20*time.Second, time.Millisecond)
	require.ErrorIs(t, r.Check(), fabric.ErrAborted)
	require.ErrorContains(t, r.Check(), "of which a call could not be captured")
	require.NoError(t, plan.Release())
	require.NoError(t, r.s.Synchronize(t.Context()))
	require.NoError(t, exec.Close())
	require.NoError(t, graph.Close())
	done(t, ranks)
}

// A stream that captures is refused at once where the ring has no room, which it would not help to wait for.
func TestACaptureIsRefusedWhileTheRingIsFull(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ranks := openHIP(t, w, 1, stage.Config{Gate: stage.Words, Timeout: 60 * time.Second}, nil)
	r := ranks[0]
	other, err := r.d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	require.NoError(t, r.Barrier(r.stream())) // a stream's first call puts more on it
	require.NoError(t, r.Wait(t.Context(), r.stream()))
	queue := w.Queue(r.s)
	require.NoError(t, queue.Hold())
	for range 256 {
		require.NoError(t, r.Barrier(r.stream()))
	}
	require.NoError(t, other.BeginCapture(hipgo.CaptureRelaxed))
	refused, inTime := within(10*time.Second, func() { assert.ErrorIs(t, r.Barrier(fabric.Stream(other.Raw())), fabric.ErrCapture) })
	assert.True(t, inTime, "it waits for room")
	require.NoError(t, queue.Release())
	<-refused
	graph, err := other.EndCapture()
	require.NoError(t, err)
	require.NoError(t, r.Wait(t.Context(), r.stream()))
	require.NoError(t, graph.Close())
	require.NoError(t, other.Close())
	done(t, ranks)
}
