package bootstrap

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestRanksMeetAndGather(t *testing.T) {
	for _, world := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			ctx := testContext(t)
			s := group(t, configs(t, world))
			each(world, func(r int) {
				for step := range 3 {
					blobs, err := s[r].AllGather(ctx, []byte(fmt.Sprintf("rank %d step %d", r, step)))
					if !assert.NoError(t, err, "rank %d", r) {
						return
					}
					for from, b := range blobs {
						assert.Equal(t, fmt.Sprintf("rank %d step %d", from, step), string(b), "rank %d", r)
					}
				}
				got, err := s[r].Broadcast(ctx, []byte(fmt.Sprintf("from %d", r)))
				assert.NoError(t, err)
				assert.Equal(t, "from 0", string(got))
			})
			for r := range s {
				assert.Equal(t, s[0].ID(), s[r].ID())
				assert.True(t, s[r].Loopback())
				assert.Equal(t, world, s[r].LocalRanks())
			}
		})
	}
}

func TestAReportIsTheCauseOfAllRanks(t *testing.T) {
	s := group(t, configs(t, 4))
	mine := &fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: -1, Text: "rank 1 gathers"}
	got := s[2].Report(mine)
	for r := range s {
		<-s[r].Done()
		var c *fabric.Cause
		require.ErrorAs(t, s[r].Cause(), &c, "rank %d", r)
		assert.Equal(t, fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: 2, Text: "rank 1 gathers"}, *c, "rank %d", r)
	}
	assert.ErrorIs(t, got, fabric.ErrDesync)
}

func TestManyRanksOpenTheirMesh(t *testing.T) {
	const world = 64
	if testing.Short() {
		t.Skip("short")
	}
	ctx := testContext(t)
	began := time.Now()
	s := group(t, configs(t, world))
	joined := time.Since(began)
	each(world, func(r int) {
		for p := range world {
			if p == r {
				continue
			}
			open := s[r].Accept
			if p < r {
				open = s[r].Dial
			}
			c, err := open(ctx, p, fabric.Lane{Channel: "host"})
			if assert.NoError(t, err) {
				t.Cleanup(func() { c.Close() })
			}
		}
	})
	t.Logf("%d ranks joined in %v and had their mesh after %v", world, joined, time.Since(began))
}
