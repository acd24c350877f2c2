package roce

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// hold parks the stream on a word of the test's.
func (r *mailRank) hold() (func(), error) {
	word, err := r.d.HostMalloc(8)
	if err != nil {
		return nil, err
	}
	if err := r.s.WaitValue64(word.Words().Addr(0), 1, hipgo.ConditionGte, math.MaxUint64); err != nil {
		return nil, err
	}
	r.held = append(r.held, word) // the stream may be late to look
	return sync.OnceFunc(func() { word.Words().Store(0, 1) }), nil
}

// mailGraph is a graph of an engine's stream.
type mailGraph struct {
	*hipgo.Exec
	graph *hipgo.Graph
	on    hipgo.Stream
}

func (g *mailGraph) Launch() error { return g.Exec.Launch(g.on) }
func (g *mailGraph) Close() error  { return errors.Join(g.Exec.Close(), g.graph.Close()) }

// graphed captures what record queues on the stream.
func (r *mailRank) graphed(record func() error) (fabrictest.Graph, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := r.s.BeginCapture(hipgo.CaptureThreadLocal); err != nil {
		return nil, err
	}
	if err := record(); err != nil {
		return nil, err
	}
	graph, err := r.s.EndCapture()
	if err != nil {
		return nil, err
	}
	exec, err := graph.Instantiate()
	if err != nil {
		return nil, errors.Join(err, graph.Close())
	}
	return &mailGraph{exec, graph, r.s}, nil
}

func (r *mailRank) subject() fabrictest.Subject {
	return fabrictest.Stream(r.StreamCollective, fabrictest.Device{Stream: r.stream(), Alloc: r.alloc, Free: r.free, Upload: r.upload,
		Download: r.download, Synchronize: r.s.Synchronize, Hold: r.hold, Graph: r.graphed, Close: r.closeDevice})
}

const contractRanks = 5

// mailSubjects opens worlds whose small calls go by the mailbox.
func mailSubjects(t *testing.T, topology func(world int) verbstest.Topology, change func(*verbstest.Fabric), c Config, gate stage.Gate) fabrictest.Opener {
	w := hiptest.Start(t, hiptest.Settings{Devices: contractRanks})
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		f := inMemory(t, topology(world))
		t.Cleanup(func() { assert.Zero(t, f.Left()) })
		if change != nil {
			change(f)
		}
		g := &mailGroup{w: w, f: f, world: world, c: c, gate: gate, slot: fabrictest.PartBytes, group: o.Group, timeout: o.Timeout}
		subjects := make([]fabrictest.Subject, world)
		for r, m := range g.open(t) {
			subjects[r] = m.subject()
		}
		return subjects
	}
}

func TestMailboxKeepsTheContractOutOfOrder(t *testing.T) {
	if underRace {
		t.Skip("left out under the race detector, for time")
	}
	open := mailSubjects(t, switched(2), func(f *verbstest.Fabric) { f.OutOfOrder(true) }, Config{SpinFor: -1}, stage.Words)
	fabrictest.RunPairwise(t, open)
}

func TestMailboxKeepsTheContractOfStreamsInRings(t *testing.T) {
	fabrictest.RunStream(t, mailSubjects(t, rings, nil, Config{}, stage.Words))
}

func TestMailboxKeepsTheContractOfGraphs(t *testing.T) {
	if underRace {
		t.Skip("left out under the race detector, for time")
	}
	fabrictest.RunCapture(t, mailSubjects(t, switched(2), nil, Config{}, stage.Kernels))
}
