package fabrictest

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPairwiseCoversEveryPairThatACandidateHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factors := rapid.IntRange(1, 5).Draw(t, "factors")
		levels := rapid.SliceOfN(rapid.IntRange(0, 3), factors, factors)
		candidates := rapid.SliceOfN(levels, 0, 60).Draw(t, "candidates")
		picked := pairwise(candidates)
		for _, c := range candidates {
			for j := range c {
				for i := range j {
					covered := false
					for _, k := range picked {
						covered = covered || (candidates[k][i] == c[i] && candidates[k][j] == c[j])
					}
					require.True(t, covered, "levels %d of factor %d and %d of %d are never together", c[i], i, c[j], j)
				}
			}
		}
		require.LessOrEqual(t, len(picked), len(candidates))
	})
}

func TestTheCoveringArrayIsFarSmallerThanTheProduct(t *testing.T) {
	all, some := product(), covering()
	t.Logf("%d of %d cases", len(some), len(all))
	assert.Greater(t, len(all), 8000)
	assert.Less(t, len(some), len(all)/20)
}

// The product is what the contract asks for, and nothing that it forbids.
func TestTheProductHasEveryCombinationOnce(t *testing.T) {
	seen := map[valueCase]bool{}
	for _, c := range product() {
		c.index = 0
		require.False(t, seen[c], "%v twice", c)
		seen[c] = true
	}
	for world := 1; world <= maxWorld; world++ {
		for size := range sizeLevels {
			for _, unaligned := range []bool{false, true} {
				for _, dt := range fabric.DTypes() {
					for _, r := range fabric.ReduceOps() {
						for _, inPlace := range []bool{false, true} {
							c := valueCase{world: world, op: fabric.AllReduce, dtype: dt, reduce: r, size: size, inPlace: inPlace, unaligned: unaligned}
							require.Equal(t, r.Takes(dt), seen[c], "%v", c)
						}
					}
				}
				for _, op := range []fabric.Op{fabric.AllGather, fabric.AllGatherV, fabric.AllGatherRows, fabric.Broadcast, fabric.AllToAll,
					fabric.AllToAllV} {
					require.True(t, seen[valueCase{world: world, op: op, size: size, unaligned: unaligned}], "%v of world %d", op, world)
				}
				for _, op := range []fabric.Op{fabric.Exchange, fabric.SendRecv, fabric.Send, fabric.Recv} {
					require.Equal(t, world > 1, seen[valueCase{world: world, op: op, size: size, unaligned: unaligned}], "%v of world %d", op, world)
				}
			}
		}
	}
}

func TestSizesLieAroundAPart(t *testing.T) {
	for _, dt := range fabric.DTypes() {
		c := valueCase{world: 3, op: fabric.AllReduce, dtype: dt}
		var got []int
		for c.size = range sizeLevels {
			got = append(got, c.bytes())
		}
		n := dt.Size()
		assert.Equal(t, []int{0, n, 3 * n, PartBytes - n, PartBytes, PartBytes + n, 3 * PartBytes}, got)
	}
}
