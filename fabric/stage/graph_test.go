package stage_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// hipGraph is a graph of an engine's stream.
type hipGraph struct {
	*hipgo.Exec
	graph *hipgo.Graph
	on    hipgo.Stream
}

func (g *hipGraph) Launch() error { return g.Exec.Launch(g.on) }
func (g *hipGraph) Close() error  { return errors.Join(g.Exec.Close(), g.graph.Close()) }

// graphed captures what record queues on the stream.
func (h *hip) graphed(record func() error) (fabrictest.Graph, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := h.s.BeginCapture(hipgo.CaptureThreadLocal); err != nil {
		return nil, err
	}
	if err := record(); err != nil {
		return nil, err
	}
	graph, err := h.s.EndCapture()
	if err != nil {
		return nil, err
	}
	exec, err := graph.Instantiate()
	if err != nil {
		return nil, errors.Join(err, graph.Close())
	}
	return &hipGraph{exec, graph, h.s}, nil
}

func TestContractOfGraphsOnHIP(t *testing.T) {
	notUnderRace(t)
	fabrictest.RunCapture(t, hipOpener(t, hiptest.Settings{}, stage.Kernels, 1024)) // which the longest calls have two of
}
