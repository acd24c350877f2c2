package fabrictest_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openMemory(_ *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
	net, arbiters := fabrictest.NewNetwork(world), fabrictest.Arbiters(world)
	subjects := make([]fabrictest.Subject, world)
	for r := range subjects {
		c := fabric.New(net.Transport(r), fabric.Options{Group: o.Group, Timeout: o.Timeout, Arbiter: arbiters[r]})
		arbiters[r].OnCause(func() { _ = c.Check() })
		subjects[r] = fabrictest.Host(c)
	}
	return subjects
}

func TestTheMemoryTransportKeepsTheContract(t *testing.T) { fabrictest.Run(t, openMemory) }

func TestThePairwiseSuitePassesToo(t *testing.T) { fabrictest.RunPairwise(t, openMemory) }
