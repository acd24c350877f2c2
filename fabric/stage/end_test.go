package stage_test

import (
	"sync/atomic"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counting counts what an Arbiter is told.
type counting struct {
	fabric.Arbiter
	reports atomic.Int32
}

func (c *counting) Report(local error) error {
	c.reports.Add(1)
	return c.Arbiter.Report(local)
}

// A rank that closes its calls on device memory leaves the group alone: fabric's Close aborts the path before it closes it.
func TestAClosedPathIsNoCauseOfTheGroup(t *testing.T) {
	arbiter := &counting{Arbiter: fabrictest.Arbiters(1)[0]}
	ranks := openRanks(t, 1, func(_ int, c *stage.Config, _ *double) { c.Arbiter = arbiter })
	ranks[0].path.Abort(&fabric.Cause{Kind: fabric.ErrClosed, Peer: -1})
	require.ErrorIs(t, ranks[0].path.Sync(t.Context(), ranks[0].s), fabric.ErrClosed)
	assert.Zero(t, arbiter.reports.Load())
	assert.NoError(t, arbiter.Cause())
}
