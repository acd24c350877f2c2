package stage_test

import (
	"context"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rank is one rank of a group over doubles.
type rank struct {
	*fabric.StreamCollective
	path    *stage.Transport
	d       *double
	s       fabric.Stream
	arbiter *fabrictest.Arbiter
	closed  bool // by the test, whose error it has seen
}

// openRanks opens a world over the in-memory wire, a device a rank. change may be nil.
func openRanks(t testing.TB, world int, change func(rank int, c *stage.Config, d *double)) []*rank {
	t.Helper()
	net, arbiters := fabrictest.NewNetwork(world), fabrictest.Arbiters(world)
	ranks := make([]*rank, world)
	for r := range ranks {
		d := newDouble(t)
		c := stage.Config{Transport: net.Transport(r), Driver: d, Timeout: 5 * time.Second, Arbiter: arbiters[r]}
		if change != nil {
			change(r, &c, d)
		}
		path, err := stage.Open(c)
		require.NoError(t, err)
		ranks[r] = &rank{StreamCollective: fabric.NewStream(path, fabric.Options{Timeout: c.Timeout, Arbiter: arbiters[r]}), path: path, d: d,
			s: fabric.Stream(d.stream()), arbiter: arbiters[r]}
		arbiters[r].OnCause(func() { _ = ranks[r].Check() })
	}
	t.Cleanup(func() {
		for _, r := range ranks {
			if err := r.Close(); !r.closed {
				assert.NoError(t, err)
			}
			r.d.leaks(t)
		}
	})
	return ranks
}

// memory gives device memory with what is in b.
func (r *rank) memory(b []byte) (fabric.DevPtr, []byte) {
	block := r.d.alloc(len(b), false)
	copy(block.mem, b)
	return fabric.DevPtr(block.at), block.mem
}

func (r *rank) wait(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, r.Wait(ctx, r.s))
}

func pattern(rank, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rank*91 + i*7 + i>>8 + 1)
	}
	return b
}
