package hipgo

import "sync/atomic"

// CaptureMode says which calls of other threads a capture forbids.
type CaptureMode int

// The modes of a capture.
const (
	CaptureGlobal      CaptureMode = 0 // an allocation on any thread invalidates it
	CaptureThreadLocal CaptureMode = 1
	CaptureRelaxed     CaptureMode = 2
)

// Graph is what a stream would have done.
type Graph struct {
	d      *Device
	raw    uintptr
	closed atomic.Bool
}

// Exec is a graph that can be launched.
type Exec struct {
	d      *Device
	raw    uintptr
	closed atomic.Bool
}

// BeginCapture makes the stream record what is queued from here on. With CaptureThreadLocal HIP wants EndCapture on the same
// thread: lock the goroutine to its thread, or take CaptureRelaxed.
//
// Implements: hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
func (s Stream) BeginCapture(mode CaptureMode) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.d.rt.check("hipStreamBeginCapture", s.d.rt.t.BeginCapture(s.d.ordinal, s.raw, int(mode)))
}

// EndCapture ends the recording.
//
// Implements: hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *pGraph)
func (s Stream) EndCapture() (*Graph, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	raw, code := s.d.rt.t.EndCapture(s.d.ordinal, s.raw)
	if err := s.d.rt.check("hipStreamEndCapture", code); err != nil {
		return nil, err
	}
	return &Graph{d: s.d, raw: raw}, nil
}

// Raw is the hipGraph_t.
func (g *Graph) Raw() uintptr { return g.raw }

// Instantiate makes the graph ready to launch. The Exec outlives the Graph.
//
// Implements: hipError_t hipGraphInstantiate(hipGraphExec_t *pGraphExec, hipGraph_t graph, hipGraphNode_t *pErrorNode,
// char *pLogBuffer, size_t bufferSize)
func (g *Graph) Instantiate() (*Exec, error) {
	if g.closed.Load() {
		return nil, closed("graph")
	}
	raw, code := g.d.rt.t.GraphInstantiate(g.d.ordinal, g.raw)
	if err := g.d.rt.check("hipGraphInstantiate", code); err != nil {
		return nil, err
	}
	return &Exec{d: g.d, raw: raw}, nil
}

// Close destroys the graph. A second Close does nothing.
//
// Implements: hipError_t hipGraphDestroy(hipGraph_t graph)
func (g *Graph) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	code := g.d.rt.t.GraphDestroy(g.d.ordinal, g.raw)
	if code != 0 {
		g.closed.Store(false)
	}
	return g.d.rt.check("hipGraphDestroy", code)
}

// Raw is the hipGraphExec_t.
func (x *Exec) Raw() uintptr { return x.raw }

// Launch queues all that the graph holds.
//
// Implements: hipError_t hipGraphLaunch(hipGraphExec_t graphExec, hipStream_t stream)
func (x *Exec) Launch(s Stream) error {
	if x.closed.Load() {
		return closed("graph to launch")
	}
	if err := s.usable(); err != nil {
		return err
	}
	return x.d.rt.check("hipGraphLaunch", x.d.rt.t.GraphLaunch(x.d.ordinal, x.raw, s.raw))
}

// Close destroys it: not while a launch of it runs. A second Close does nothing.
//
// Implements: hipError_t hipGraphExecDestroy(hipGraphExec_t graphExec)
func (x *Exec) Close() error {
	if x.closed.Swap(true) {
		return nil
	}
	code := x.d.rt.t.ExecDestroy(x.d.ordinal, x.raw)
	if code != 0 {
		x.closed.Store(false)
	}
	return x.d.rt.check("hipGraphExecDestroy", code)
}
