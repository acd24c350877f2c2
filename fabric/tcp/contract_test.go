//go:build linux || darwin

package tcp

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func subjects(c Config) fabrictest.Opener {
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		c := c
		c.Group, c.EagerBytes, c.ChunkBytes, c.Yield = o.Group, fabrictest.PartBytes, fabrictest.PartBytes, true
		arbiters := fabrictest.Arbiters(world)
		ranks := make([]fabrictest.Subject, world)
		for r, tr := range open(t, world, c) {
			arbiters[r].OnCause(func() { tr.Abort(arbiters[r].Cause()) })
			ranks[r] = fabrictest.Host(fabric.New(tr, fabric.Options{Group: o.Group, Timeout: o.Timeout, Arbiter: arbiters[r]}))
		}
		return ranks
	}
}

func TestTCPKeepsTheContract(t *testing.T) { fabrictest.Run(t, subjects(Config{})) }

func TestTCPKeepsTheContractVerifiedAndParked(t *testing.T) {
	fabrictest.RunPairwise(t, subjects(Config{Verify: true, SpinFor: -1, Window: MinWindow}))
}

func TestTCPKeepsTheContractOnSeveralLanes(t *testing.T) {
	fabrictest.RunPairwise(t, subjects(Config{Lanes: 3}))
}

func TestTCPKeepsTheContractOnSeveralLanesVerifiedAndParked(t *testing.T) {
	fabrictest.RunPairwise(t, subjects(Config{Lanes: 2, Verify: true, SpinFor: -1, Window: MinWindow}))
}
