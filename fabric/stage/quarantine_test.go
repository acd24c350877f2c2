package stage_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pinned counts the blocks of pinned memory that are not freed.
func (d *double) pinned() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.blocks {
		if b.host {
			n++
		}
	}
	return n
}

// A driver that cannot say whether a copy has landed has not said that it has: what it may write is kept until it can.
func TestAProbeThatFailsFreesNothing(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Record", "Query"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			ranks := openRanks(t, 2, func(r int, c *stage.Config, d *double) {
				if r == 0 {
					return
				}
				d.lose = func(n int) bool {
					if n == 2 {
						broken.Store(true)
					}
					return n == 2
				}
				d.fault = func(m string, _ int) error {
					if m == method && broken.Load() {
						return errors.New("hipErrorUnknown")
					}
					return nil
				}
			})
			for _, err := range gathers(t, ranks, 3, 100) {
				require.ErrorIs(t, err, fabric.ErrDevice)
			}
			d := ranks[1].d
			before := d.pinned()
			require.NotZero(t, before)
			err := ranks[1].path.Close()
			require.ErrorIs(t, err, fabric.ErrDevice)
			require.ErrorContains(t, err, "not freed yet: a copy of its may still land")
			assert.Equal(t, before, d.pinned())
			broken.Store(false)
			never := time.NewTimer(50 * time.Millisecond)
			<-never.C
			assert.Equal(t, before, d.pinned(), "the driver answers, but the copy is still out")
			ranks[1].landLate()
			require.Eventually(t, func() bool { return d.pinned() == 0 }, 5*time.Second, time.Millisecond, "freed once it has landed")
			ranks[1].closed = true
		})
	}
}
