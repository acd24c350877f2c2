//go:build rxevm && linux

package roce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

func TestSoftRoCEKeepsTheContract(t *testing.T) {
	fabrictest.RunPairwise(t, softSwitch.subjects(Config{}))
}

// softRings cables three and four ranks in rings, of which the latter relays; nil: another world, which the switch has.
func softRings(world int) *soft {
	switch world {
	case 3:
		return &softThree
	case relayWorld:
		return &softRing
	}
	return nil
}

func TestSoftRoCEKeepsTheContractInRings(t *testing.T) {
	c := Config{Verify: true}
	fabrictest.RunPairwise(t, func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		if s := softRings(world); s != nil {
			return s.subjects(c)(t, world, o)
		}
		return subjects(switched(1), nil, c)(t, world, o)
	})
}

// Of a hundred packets that a port sends one is lost, and of what they carry nothing.
func TestSoftRoCELosesNothingThatTheNetworkLoses(t *testing.T) {
	softSwitch.make(t)
	shape := func(args ...string) {
		for i := range softHosts {
			out, err := exec.Command("tc", append([]string{"qdisc", args[0], "dev", fmt.Sprintf("s%d", i+1), "root"}, args[1:]...)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	shape("add", "netem", "loss", "1%")
	defer shape("del")
	lost := func() (n int) {
		for i := range softHosts {
			out, err := exec.Command("tc", "-s", "-j", "qdisc", "show", "dev", fmt.Sprintf("s%d", i+1), "root").Output()
			require.NoError(t, err)
			var all []struct{ Drops int }
			require.NoError(t, json.Unmarshal(out, &all), "%s", out)
			for _, q := range all {
				n += q.Drops
			}
		}
		return n
	}
	for _, world := range []int{2, 4} {
		for _, order := range []Order{OrderFlags, OrderImmediate} {
			t.Run(fmt.Sprintf("%d ranks, order %v", world, order), func(t *testing.T) {
				ranks := softSwitch.open(t, world, Config{Order: order})
				for r, err := range onAll(world, func(r int) error { return gatherSizes(ranks[r], r, world, 10, 1, 3000, 100_000) }) {
					require.NoError(t, err, "rank %d", r)
				}
				for _, tr := range ranks {
					require.NoError(t, tr.Close())
				}
			})
		}
	}
	n := lost()
	fmt.Printf("RESULT: %d packets were lost\n", n)
	assert.Positive(t, n)
}

// gatherSizes gathers so many times each of the sizes, and compares what comes.
func gatherSizes(tr *Transport, rank, world, times int, sizes ...int) error {
	c := fabric.New(tr, fabric.Options{Timeout: time.Minute})
	for _, n := range sizes {
		for i := range times {
			out := make([]byte, n*world)
			if err := c.AllGather(out, noise(uint64(i+rank), n)); err != nil {
				return err
			}
			for p := range world {
				if !bytes.Equal(out[p*n:(p+1)*n], noise(uint64(i+p), n)) {
					return fmt.Errorf("%d bytes of rank %d are wrong", n, p)
				}
			}
		}
	}
	return nil
}
