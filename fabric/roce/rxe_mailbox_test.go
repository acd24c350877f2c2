//go:build rxevm && linux && cgo

package roce

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs"
)

// softMail opens worlds of software devices whose small calls go by the mailbox over soft RoCE; where on gives nil, over HCAs in memory.
func softMail(t *testing.T, on func(world int) *soft, order Order) fabrictest.Opener {
	w := hiptest.Start(t, hiptest.Settings{Devices: contractRanks})
	lib, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		g := &mailGroup{w: w, world: world, c: Config{Order: order}, slot: fabrictest.PartBytes, group: o.Group, timeout: o.Timeout}
		if s := on(world); s != nil {
			s.make(t)
			g.driver, g.change = func(int) Driver { return lib.Seam() }, func(r int, c *MailboxConfig) { c.RoCE.HCAs = s.devices(r) }
		} else {
			g.f = inMemory(t, switched(1)(world))
		}
		subjects := make([]fabrictest.Subject, world)
		for r, m := range g.open(t) {
			subjects[r] = m.subject()
		}
		return subjects
	}
}

func TestSoftMailboxKeepsTheContract(t *testing.T) {
	fabrictest.RunPairwise(t, softMail(t, func(int) *soft { return &softSwitch }, OrderAuto))
}

func TestSoftMailboxKeepsTheContractInRings(t *testing.T) {
	fabrictest.RunPairwise(t, softMail(t, softRings, OrderFlags))
}
