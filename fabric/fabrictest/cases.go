package fabrictest

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// maxWorld is the largest world of the suite.
const maxWorld = 5

// valueCase is one point of the product. Roots, shifts, rows and lengths are not factors: they vary with index.
type valueCase struct {
	index     int
	world     int
	op        fabric.Op
	dtype     fabric.DType    // reductions only
	reduce    fabric.ReduceOp // reductions only
	size      int             // index into sizes
	inPlace   bool
	unaligned bool
}

// sizes are elements of a rank's block, for elements of n bytes: none, few, and around what goes in one piece.
func (c valueCase) elements() int {
	n := c.elementBytes()
	part := PartBytes / n
	return [...]int{0, 1, 3, part - 1, part, part + 1, 3 * part, part / c.world, part/c.world + 1}[c.size]
}

const (
	sizeLevels  = 7
	wholeLevels = 9 // the last two: the blocks of all ranks make about a part together
)

func (c valueCase) elementBytes() int {
	if c.op.Reduces() {
		return c.dtype.Size()
	}
	return 1
}

// bytes of a rank's block.
func (c valueCase) bytes() int { return c.elements() * c.elementBytes() }

func (c valueCase) String() string {
	s := fmt.Sprintf("case %d: %v world %d, blocks of %d bytes", c.index, c.op, c.world, c.bytes())
	if c.op.Reduces() {
		s += fmt.Sprintf(", %v %v", c.dtype, c.reduce)
	}
	if c.inPlace {
		s += ", in place"
	}
	if c.unaligned {
		s += ", unaligned"
	}
	return s
}

// vector is the case as pairwise sees it.
func (c valueCase) vector() []int {
	return []int{c.world, int(c.op), int(c.dtype), int(c.reduce), c.size, level(c.inPlace), level(c.unaligned)}
}

func level(b bool) int {
	if b {
		return 1
	}
	return 0
}

// product is every case of worlds 1 to maxWorld.
func product() []valueCase {
	var all []valueCase
	for world := 1; world <= maxWorld; world++ {
		for _, op := range fabric.Ops() {
			if op.Class() == fabric.Pair && world == 1 {
				continue
			}
			levels := sizeLevels
			if op == fabric.ReduceScatter || op == fabric.AllToAll {
				levels = wholeLevels
			}
			if op == fabric.Barrier {
				levels = 1
			}
			for size := range levels {
				for _, number := range numbers(op) {
					for layout := range 4 {
						c := valueCase{index: len(all), world: world, op: op, dtype: number.dtype, reduce: number.reduce, size: size,
							inPlace: layout&1 != 0, unaligned: layout&2 != 0}
						if c.inPlace && op != fabric.AllReduce && op != fabric.AllGather && op != fabric.AllGatherV {
							continue
						}
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

type number struct {
	dtype  fabric.DType
	reduce fabric.ReduceOp
}

func numbers(op fabric.Op) []number {
	if !op.Reduces() {
		return []number{{}}
	}
	var all []number
	for _, dt := range fabric.DTypes() {
		for _, r := range fabric.ReduceOps() {
			if r.Takes(dt) {
				all = append(all, number{dt, r})
			}
		}
	}
	return all
}

// covering is a part of the product in which any two levels of two factors still meet.
func covering() []valueCase {
	all := product()
	vectors := make([][]int, len(all))
	for i, c := range all {
		vectors[i] = c.vector()
	}
	var some []valueCase
	for _, i := range pairwise(vectors) {
		some = append(some, all[i])
	}
	return some
}
