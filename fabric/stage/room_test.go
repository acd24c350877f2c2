package stage_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// launches counts what is launched.
type launches struct {
	*hipgo.Seam
	n int
}

func (l *launches) Launch(stream, function uintptr, blocks, threads int, args []byte) error {
	l.n++
	return l.Seam.Launch(stream, function, blocks, threads, args)
}

// A call that a plan has no room for is no part of the graph, not even by half.
func TestACallThatAPlanHasNoRoomForIsNotCaptured(t *testing.T) {
	const left = 4
	for _, arm := range []struct {
		name string
		fill func(r *hipRank, p fabric.DevPtr) error // takes the room of all parts but left
		call func(r *hipRank, p fabric.DevPtr, parts int) error
		want string
	}{
		{"lists", func(r *hipRank, p fabric.DevPtr) error {
			for range 17 {
				if err := differing(r, p, 60); err != nil {
					return err
				}
			}
			return nil
		}, differing, "all-gather-v needs room for 5 parts with lists of the 4 that its plan has left; make several plans"},
		{"descriptors", func(r *hipRank, _ fabric.DevPtr) error { r.path.LeaveRoom(left); return nil }, func(r *hipRank, p fabric.DevPtr, parts int) error {
			return r.AllGather(r.stream(), p+roomBlock, p, 16*parts)
		}, "all-gather needs 5 descriptors of the 4 that are left; release plans"},
	} {
		t.Run(arm.name, func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 2})
			var first *launches
			ranks := openHIP(t, w, 2, stage.Config{Gate: stage.Kernels, PartBytes: 16}, func(r int, c *stage.Config) {
				if r == 0 {
					first = &launches{Seam: c.Driver.(*hipgo.Seam)}
					c.Driver = first
				}
			})
			defer done(t, ranks)
			r := ranks[0]
			p, err := r.alloc(3 * roomBlock)
			require.NoError(t, err)
			plan, err := r.Capture(r.stream())
			require.NoError(t, err)
			require.NoError(t, r.s.BeginCapture(hipgo.CaptureRelaxed))
			require.NoError(t, arm.fill(r, p))
			before := first.n
			err = arm.call(r, p, left+1)
			require.ErrorIs(t, err, fabric.ErrUnsupported)
			require.ErrorContains(t, err, arm.want)
			assert.Equal(t, before, first.n)
			require.NoError(t, arm.call(r, p, left), "there is room for so much")
			g, err := r.s.EndCapture()
			require.NoError(t, err)
			require.NoError(t, g.Close())
			require.NoError(t, plan.Release())
			require.NoError(t, r.Check())
		})
	}
}

const roomBlock = 16 * 60

// differing is a call whose parts' last pieces differ in size.
func differing(r *hipRank, p fabric.DevPtr, parts int) error {
	return r.AllGatherV(r.stream(), p+roomBlock, p, 16*parts, []int{16 * parts, 16*parts - 8})
}
