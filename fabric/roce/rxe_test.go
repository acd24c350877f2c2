//go:build rxevm && linux

package roce

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/verbs"
)

// soft is a topology of soft RoCE devices, made once in the guest; devices says which a rank has.
type soft struct {
	made    bool
	name    string
	devices func(rank int) []string
}

// softHosts are those of the switch.
const softHosts = 5

var (
	softSwitch = soft{name: fmt.Sprintf("switch:%d", softHosts), devices: func(r int) []string { return []string{fmt.Sprintf("=rxe_s%d", r+1)} }}
	softRing   = soft{name: "ring:4", devices: func(r int) []string { return []string{fmt.Sprintf("=rxe_h%da", r+1), fmt.Sprintf("=rxe_h%db", r+1)} }}
	softThree  = soft{name: "ring:3", devices: func(r int) []string { return []string{fmt.Sprintf("=rxe_t%da", r+1), fmt.Sprintf("=rxe_t%db", r+1)} }}
)

func (s *soft) make(t testing.TB) {
	t.Helper()
	if s.made {
		return
	}
	args := []string{s.name, "4500"}
	if s == &softThree {
		args = append(args, "t")
	}
	out, err := exec.Command("rxe-topology", args...).CombinedOutput()
	require.NoError(t, err, "rxe-topology %v: %s", args, out)
	s.made = true
}

func (s *soft) open(t testing.TB, world int, c Config) []*Transport {
	t.Helper()
	s.make(t)
	lib, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	c.Yield = true
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ranks := make([]*Transport, world)
	meshes := newMeshes(world)
	errs := onAll(world, func(r int) (err error) {
		c := c
		c.HCAs = s.devices(r)
		ranks[r], err = Open(ctx, meshes[r], lib.Seam(), c)
		return err
	})
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return ranks
}

func (s *soft) subjects(c Config) fabrictest.Opener {
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		c := c
		c.Group, c.EagerBytes, c.SlotBytes = o.Group, fabrictest.PartBytes, fabrictest.PartBytes
		arbiters := fabrictest.Arbiters(world)
		subjects := make([]fabrictest.Subject, world)
		for r, tr := range s.open(t, world, c) {
			arbiters[r].OnCause(func() { tr.Abort(arbiters[r].Cause()) })
			subjects[r] = fabrictest.Host(fabric.New(tr, fabric.Options{Group: o.Group, Timeout: o.Timeout, Arbiter: arbiters[r]}))
		}
		return subjects
	}
}

func TestSoftRanksGather(t *testing.T) {
	for _, s := range []struct {
		on    *soft
		world int
	}{{&softSwitch, 2}, {&softSwitch, 4}, {&softThree, 3}, {&softRing, 4}} {
		for _, order := range []Order{OrderAuto, OrderFlags} {
			t.Run(fmt.Sprintf("%s, %d ranks, order %v", s.on.name, s.world, order), func(t *testing.T) {
				ranks := s.on.open(t, s.world, Config{Order: order})
				for r, err := range onAll(s.world, func(r int) error { return gatherSizes(ranks[r], r, s.world, 5, 0, 1, 16, 5000, 200_000) }) {
					assert.NoError(t, err, "rank %d", r)
				}
				for _, tr := range ranks {
					require.NoError(t, tr.Close())
				}
			})
		}
	}
}
