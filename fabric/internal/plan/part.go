package plan

import "github.com/hipfabric/hipfabric/fabric"

// Piece is bytes that are one run both in an engine's buffer and in a slab.
type Piece struct{ Buffer, Slab, Bytes int }

// pieces collects, and joins what is one run.
type pieces []Piece

func (p pieces) add(buffer, slab, n int) pieces {
	if n == 0 {
		return p
	}
	if len(p) > 0 {
		if l := &p[len(p)-1]; l.Buffer+l.Bytes == buffer && l.Slab+l.Bytes == slab {
			l.Bytes += n
			return p
		}
	}
	return append(p, Piece{buffer, slab, n})
}

// Down appends to dst what part k takes from the engine's in.
func (s *Shape) Down(dst []Piece, k int) []Piece {
	p, off := pieces(dst), k*s.unit
	switch s.Op {
	case fabric.ReduceScatter, fabric.AllToAll:
		n := s.within(s.longest, off)
		for r := range s.World {
			p = p.add(r*s.longest+off, r*n, n)
		}
	case fabric.AllToAllV:
		p = s.packed(p, s.InLengths, off)
	case fabric.AllGatherRows:
		if s.perRow > 0 && s.In > 0 {
			row, at, n := s.row(k)
			return p.add(row*s.RowBytes+at, 0, n)
		}
		p = p.add(off, 0, s.within(s.In, off))
	default:
		p = p.add(off, 0, s.within(s.In, off))
	}
	return p
}

// Up appends to dst what part k brings to the engine's out.
func (s *Shape) Up(dst []Piece, k int) []Piece {
	p, off := pieces(dst), k*s.unit
	switch s.Op {
	case fabric.AllGather, fabric.AllToAll:
		n := s.within(s.longest, off)
		for r := range s.World {
			p = p.add(r*s.longest+off, r*n, n)
		}
	case fabric.AllGatherV:
		stride := s.within(s.Stride, off)
		for r, n := range s.Lengths {
			p = p.add(r*s.Stride+off, r*stride, s.within(n, off))
		}
	case fabric.AllToAllV:
		p = s.packed(p, s.Lengths, off)
	case fabric.AllGatherRows:
		if s.perRow == 0 || s.In == 0 {
			return p.add(off*s.World, 0, s.within(s.In, off)*s.World)
		}
		row, at, n := s.row(k)
		for r := range s.World {
			p = p.add((row*s.World+r)*s.RowBytes+at, r*n, n)
		}
	default:
		p = p.add(off, 0, s.within(s.Out, off))
	}
	return p
}

// packed adds a part of each of the blocks that lie one after the other, in the buffer as in the slab.
func (s *Shape) packed(p pieces, lengths []int, off int) pieces {
	buffer, slab := 0, 0
	for _, n := range lengths {
		m := s.within(n, off)
		p = p.add(buffer+off, slab, m)
		buffer, slab = buffer+n, slab+m
	}
	return p
}

// Part is the call that moves one part, between slabs.
type Part struct {
	In, Out          int // bytes in the slabs
	Stride, RowBytes int
	Lengths          []int
	InLengths        []int
}

// Part gives the call of part k, whose lengths it writes into room: 2 * World numbers.
func (s *Shape) Part(k int, room []int) Part {
	off := k * s.unit
	p := Part{In: s.within(s.In, off), Out: s.within(s.Out, off)}
	switch s.Op {
	case fabric.ReduceScatter:
		p.In, p.Out = s.within(s.Out, off)*s.World, s.within(s.Out, off)
	case fabric.AllToAll:
		p.In = s.within(s.longest, off) * s.World
		p.Out = p.In
	case fabric.AllGather:
		p.Out = p.In * s.World
	case fabric.AllGatherV:
		p.Stride = s.within(s.Stride, off)
		p.Out = p.Stride * s.World
		p.Lengths, _ = s.clip(room[:s.World], s.Lengths, off)
	case fabric.AllToAllV:
		p.Lengths, p.Out = s.clip(room[:s.World], s.Lengths, off)
		p.InLengths, p.In = s.clip(room[s.World:], s.InLengths, off)
	case fabric.AllGatherRows:
		p.RowBytes = s.RowBytes
		if s.perRow > 0 && s.In > 0 {
			_, _, p.In = s.row(k)
			p.RowBytes = p.In
		}
		p.Out = p.In * s.World
	}
	return p
}

func (s *Shape) clip(room, lengths []int, off int) (clipped []int, sum int) {
	for r, n := range lengths {
		room[r] = s.within(n, off)
		sum += room[r]
	}
	return room[:s.World], sum
}

// UpWide is an AllGatherV's Up for one who does not know its lengths: each block is as long as Stride. What lies past a
// block's length is undefined.
func (s *Shape) UpWide(dst []Piece, k int) []Piece {
	off, p := k*s.unit, pieces(dst)
	n := s.within(s.Stride, off)
	for r := range s.World {
		p = p.add(r*s.Stride+off, r*n, n)
	}
	return p
}
