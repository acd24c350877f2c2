package plan

import "github.com/hipfabric/hipfabric/fabric"

const (
	// Grain is what a part's size is a multiple of: whole elements of every dtype, and aligned copies.
	Grain = 16
	// MinPart and MaxPart bound the size of a part.
	MinPart, MaxPart = Grain, 64 << 20
)

// Shape is what the cut of a call depends on. Buffers of In and Out bytes are as the operation wants them.
type Shape struct {
	Op                fabric.Op
	World             int
	PartBytes         int
	In, Out           int
	Stride, RowBytes  int
	Lengths           []int // AllGatherV: of every rank's block; AllToAllV: bytes from each rank
	InLengths         []int // AllToAllV: bytes to each rank
	longest, unit     int   // filled by Fill: bytes of the longest block, and of a part of it
	perRow, pieceUnit int   // AllGatherRows with rows longer than a part: parts of a row, bytes of one
}

// SlabBytes is what the parts of any call need: the most a part's In and Out can have.
func SlabBytes(world, partBytes int) (in, out int) {
	return max(partBytes, world*Grain), max(partBytes, Grain) * world
}

// Fill works out the unit of the cut; call it after a change of the fields.
func (s *Shape) Fill() {
	s.unit, s.perRow, s.pieceUnit = s.PartBytes, 0, 0
	switch s.Op {
	case fabric.ReduceScatter:
		s.longest, s.unit = s.Out, s.share()
	case fabric.AllToAll:
		s.longest, s.unit = s.In/s.World, s.share()
	case fabric.AllToAllV:
		s.longest, s.unit = max(longest(s.Lengths), longest(s.InLengths)), s.share()
	case fabric.AllGatherV:
		s.longest = longest(s.Lengths)
	case fabric.AllGatherRows:
		s.longest = s.In
		if s.RowBytes <= s.PartBytes {
			s.unit = s.PartBytes / s.RowBytes * s.RowBytes
		} else {
			s.perRow, s.pieceUnit = ceil(s.RowBytes, s.PartBytes), s.PartBytes
		}
	case fabric.AllGather, fabric.AllReduce:
		s.longest = s.In
	case fabric.Barrier:
		s.longest = 0
	default: // Broadcast, Exchange, SendRecv, Send, Recv
		s.longest = max(s.In, s.Out)
	}
}

// share is a part of one block, when a part has one of each rank's.
func (s *Shape) share() int { return max(Grain, s.PartBytes/s.World&^(Grain-1)) }

// Parts is how many parts the call has, at least one.
func (s *Shape) Parts() int {
	if s.perRow > 0 {
		return max(1, s.In/s.RowBytes*s.perRow)
	}
	return s.PartsOf(s.longest)
}

// Windows is how many parts the call may have when only Stride is known of an AllGatherV's lengths; Parts elsewhere.
func (s *Shape) Windows() int {
	if s.Op == fabric.AllGatherV {
		return s.PartsOf(s.Stride)
	}
	return s.Parts()
}

// PartsOf is how many parts there are where the longest block of all ranks is of n bytes: an AllToAllV's.
func (s *Shape) PartsOf(n int) int { return max(1, ceil(n, s.unit)) }

// Longest is this rank's longest block.
func (s *Shape) Longest() int { return s.longest }

func ceil(n, unit int) int { return (n + unit - 1) / unit }

func longest(lengths []int) int {
	n := 0
	for _, l := range lengths {
		n = max(n, l)
	}
	return n
}

// within is how many of n bytes lie in the unit that begins at off.
func (s *Shape) within(n, off int) int { return max(0, min(n-off, s.unit)) }

// row is where part k of long rows begins: its row, and where in it, with its bytes.
func (s *Shape) row(k int) (row, off, n int) {
	row, off = k/s.perRow, k%s.perRow*s.pieceUnit
	return row, off, min(s.pieceUnit, s.RowBytes-off)
}
