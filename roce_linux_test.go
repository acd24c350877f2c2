package hipfabric

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func TestAGroupGoesByRoCEWhereItIsAskedTo(t *testing.T) {
	f, err := verbstest.New(1, verbstest.Switch(3, 2))
	require.NoError(t, err)
	defer f.Close()
	groups := opened(t, 3, func(c *Config) {
		c.Paths = []string{"roce", "tcp"}
		c.RDMA = f.Host(c.Rank).Library()
	})
	for r, err := range each(3, func(r int) error {
		g := groups[r]
		if g.Paths()[0] != (Path{Name: "roce", Chosen: true, Reason: "every rank has it"}) {
			return fmt.Errorf("paths are %+v", g.Paths())
		}
		for _, n := range []int{16, 300_000} {
			out := make([]byte, 3*n)
			if err := g.Host().AllGather(out, bytes.Repeat([]byte{byte(r)}, n)); err != nil {
				return err
			}
			for p := range 3 {
				if !bytes.Equal(out[p*n:][:n], bytes.Repeat([]byte{byte(p)}, n)) {
					return fmt.Errorf("rank %d's %d bytes are wrong", p, n)
				}
			}
		}
		part, err := g.Split(t.Context(), "pair", r/2, r, SplitOptions{})
		if err != nil {
			return err
		}
		if part.Paths()[0].Name != "roce" {
			return fmt.Errorf("a part's paths are %+v", part.Paths())
		}
		v := []int32{int32(r + 1)}
		if err := part.Host().AllReduce(fabric.Bytes(v), fabric.Bytes(v), fabric.I32, fabric.Sum); err != nil {
			return err
		}
		if want := []int32{3, 3, 3}[r]; v[0] != want {
			return fmt.Errorf("the part's sum is %d", v[0])
		}
		return part.Close(t.Context())
	}) {
		require.NoError(t, err, "rank %d", r)
	}
	closeAll(groups)
	assert.Zero(t, f.Left())
}

// One rank without RDMA keeps all from it, alike; with no other path that is the error of all.
func TestOneRankWithoutRDMAKeepsAllFromIt(t *testing.T) {
	f, err := verbstest.New(1, verbstest.Switch(3, 1))
	require.NoError(t, err)
	defer f.Close()
	f.Host(1).NoRDMA()
	with := func(paths ...string) func(c *Config) {
		return func(c *Config) { c.Paths, c.RDMA = paths, f.Host(c.Rank).Library() }
	}
	groups := opened(t, 3, with("roce", "tcp"))
	for r, g := range groups {
		require.Len(t, g.Paths(), 2, "rank %d", r)
		assert.False(t, g.Paths()[0].Chosen, "rank %d", r)
		assert.Contains(t, g.Paths()[0].Reason, "no from rank 1", "rank %d", r)
		assert.Equal(t, Path{Name: "tcp", Chosen: true, Reason: "every rank has it"}, g.Paths()[1], "rank %d", r)
	}
	for r, err := range each(3, func(r int) error { return groups[r].Host().Barrier() }) {
		require.NoError(t, err, "rank %d", r)
	}
	closeAll(groups)
	all := configs(t, 3, with("roce"))
	for r, err := range each(3, func(r int) error { _, err := Open(t.Context(), all[r]); return err }) {
		assertOpenError(t, r, err, fabric.ErrUnsupported)
		assert.ErrorContains(t, err, "no from rank 1", "rank %d", r)
	}
	assert.Zero(t, f.Left())
}
