package roce

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inMemory is a fabric of HCAs in memory for the length of a test.
func inMemory(t testing.TB, topology verbstest.Topology) *verbstest.Fabric {
	t.Helper()
	f, err := verbstest.New(1, topology)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// open brings up a group of as many ranks as the fabric has hosts, or the first world of them. The caller closes.
func open(t testing.TB, f *verbstest.Fabric, world int, c Config) []*Transport {
	t.Helper()
	ranks, errs := tryOpen(t.Context(), f, world, func(int) Config { return c })
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return ranks
}

func tryOpen(ctx context.Context, f *verbstest.Fabric, world int, config func(rank int) Config) ([]*Transport, []error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ranks, errs := make([]*Transport, world), make([]error, world)
	var group sync.WaitGroup
	for r, m := range newMeshes(world) {
		c := config(r)
		c.Addresses = f.Host(r).Addresses
		group.Go(func() { ranks[r], errs[r] = Open(ctx, m, f.Host(r).Library().Seam(), c) })
	}
	group.Wait()
	return ranks, errs
}

func subjects(topology func(world int) verbstest.Topology, change func(*verbstest.Fabric), c Config) fabrictest.Opener {
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		f := inMemory(t, topology(world))
		if change != nil {
			change(f)
		}
		c := c
		c.Group, c.EagerBytes, c.SlotBytes, c.Yield = o.Group, fabrictest.PartBytes, fabrictest.PartBytes, true
		arbiters := fabrictest.Arbiters(world)
		subjects := make([]fabrictest.Subject, world)
		for r, tr := range open(t, f, world, c) {
			arbiters[r].OnCause(func() { tr.Abort(arbiters[r].Cause()) })
			subjects[r] = fabrictest.Host(fabric.New(tr, fabric.Options{Group: o.Group, Timeout: o.Timeout, Arbiter: arbiters[r]}))
		}
		return subjects
	}
}

func switched(rails int) func(int) verbstest.Topology {
	return func(world int) verbstest.Topology { return verbstest.Switch(max(world, 2), rails) }
}

func TestRoCEKeepsTheContract(t *testing.T) { fabrictest.Run(t, subjects(switched(1), nil, Config{})) }

func TestRoCEKeepsTheContractOnTwoStripesVerifiedAndParked(t *testing.T) {
	fabrictest.RunPairwise(t, subjects(switched(2), nil, Config{Verify: true, SpinFor: -1}))
}

func TestRoCEKeepsTheContractOutOfOrder(t *testing.T) {
	fabrictest.RunPairwise(t, subjects(switched(2), func(f *verbstest.Fabric) { f.OutOfOrder(true) }, Config{Slots: MinSlots}))
}

func TestTwoRanksGather(t *testing.T) {
	f := inMemory(t, verbstest.Switch(2, 1))
	ranks := open(t, f, 2, Config{Yield: true})
	var group sync.WaitGroup
	for r, tr := range ranks {
		group.Go(func() {
			c := fabric.New(tr, fabric.Options{Timeout: 10 * time.Second})
			for n := range 1000 {
				out, in := make([]byte, 32), make([]byte, 16)
				for i := range in {
					in[i] = byte(n + r)
				}
				if !assert.NoError(t, c.AllGather(out, in)) || !assert.Equal(t, byte(n), out[0]) || !assert.Equal(t, byte(n+1), out[16]) {
					return
				}
			}
		})
	}
	group.Wait()
	for _, tr := range ranks {
		require.NoError(t, tr.Close())
	}
	assert.Zero(t, f.Left())
}

// rings cables three and four ranks in rings, of which the latter relays.
func rings(world int) verbstest.Topology {
	if world == 3 || world == relayWorld {
		return verbstest.Ring(world)
	}
	return verbstest.Switch(max(world, 2), 1)
}

func TestRoCEKeepsTheContractInRings(t *testing.T) {
	fabrictest.RunPairwise(t, subjects(rings, nil, Config{}))
}

func TestRoCEKeepsTheContractInRingsOutOfOrder(t *testing.T) {
	fabrictest.RunPairwise(t, subjects(rings, func(f *verbstest.Fabric) { f.OutOfOrder(true) }, Config{Verify: true}))
}
