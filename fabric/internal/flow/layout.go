package flow

import (
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

func (l *Layout) layOut(c *fabric.Call) {
	switch c.Op {
	case fabric.AllReduce:
		l.layOutAllReduce(c)
	case fabric.ReduceScatter:
		l.layOutReduceScatter(c)
	case fabric.AllGather:
		n := len(c.In)
		l.own(c.Out[l.Rank*n:], c.In)
		l.each(c, func(r int) ([]byte, []byte) { return c.In, c.Out[r*n : (r+1)*n] })
	case fabric.AllGatherV:
		l.own(c.Out[l.Rank*c.Stride:], c.In)
		l.each(c, func(r int) ([]byte, []byte) { return c.In, c.Out[r*c.Stride:][:c.Lengths[r]] })
	case fabric.AllGatherRows:
		l.layOutRows(c)
	case fabric.Broadcast:
		l.layOutBroadcast(c)
	case fabric.AllToAll:
		n := len(c.In) / l.World
		l.own(c.Out[l.Rank*n:], c.In[l.Rank*n:][:n])
		l.each(c, func(r int) ([]byte, []byte) { return c.In[r*n:][:n], c.Out[r*n:][:n] })
	case fabric.AllToAllV:
		l.layOutAllToAllV(c)
	case fabric.Barrier:
		l.each(c, func(int) ([]byte, []byte) { return nil, nil })
	default:
		l.layOutPair(c)
	}
}

// own is this rank's block for itself, copied while it waits for the others.
func (l *Layout) own(out, in []byte) { l.ownOut, l.ownIn = out, in }

// each gives every peer a span each way.
func (l *Layout) each(c *fabric.Call, spans func(r int) (out, in []byte)) {
	for r := range l.World {
		if r == l.Rank {
			continue
		}
		out, in := spans(r)
		l.ends.Send(r, l.span(c, out, frame.Contribution))
		l.ends.Receive(r, l.span(c, in, frame.Contribution))
	}
}

// span is one of a call of the group's sequence.
func (l *Layout) span(c *fabric.Call, buf []byte, step frame.Step) Span {
	return Span{Buf: buf, Seq: c.Seq, Total: uint64(c.Bytes), Rank: frame.NoRank, Step: step}
}

// room is where the contributions of the other ranks land: world blocks of n bytes, this rank's unused.
func (l *Layout) room(n int) []byte {
	if need := n * l.World; len(l.arena) < need {
		l.arena = l.Arena(need)
	}
	return l.arena[:n*l.World]
}

// layOutAllReduce is one-shot up to EagerBytes: everybody's bytes to everybody. Above, it goes direct: each rank
// combines its own block of all ranks' bytes and sends the result to all.
func (l *Layout) layOutAllReduce(c *fabric.Call) {
	n := len(c.In)
	if n <= l.Eager {
		l.overwrites = n > 0 && &c.In[0] == &c.Out[0]
		l.gather(c, c.Out, c.In, n, func(int) []byte { return c.In })
		return
	}
	at := func(r int) int { return blockAt(n, c.DType.Size(), l.World, r) }
	own := at(l.Rank+1) - at(l.Rank)
	mine := c.Out[at(l.Rank):at(l.Rank+1)]
	l.gather(c, mine, c.In[at(l.Rank):at(l.Rank+1)], own, func(r int) []byte { return c.In[at(r):at(r+1)] })
	for r := range l.World {
		if r != l.Rank {
			l.ends.Send(r, l.span(c, mine, frame.Result))
			l.ends.Receive(r, l.span(c, c.Out[at(r):at(r+1)], frame.Result))
		}
	}
}

// blockAt is where block r of n bytes begins, when world blocks of whole elements share them.
func blockAt(n, size, world, r int) int {
	each := (n/size + world - 1) / world
	return min(each*r*size, n)
}

func (l *Layout) layOutReduceScatter(c *fabric.Call) {
	n := len(c.Out)
	l.gather(c, c.Out, c.In[l.Rank*n:][:n], n, func(r int) []byte { return c.In[r*n:][:n] })
}

// gather lets every peer's n bytes land in the arena, to be combined with this rank's own into block.
func (l *Layout) gather(c *fabric.Call, block, own []byte, n int, out func(r int) []byte) {
	room := l.room(n)
	for r := range l.World {
		l.inputs[r] = room[r*n:][:n]
	}
	l.inputs[l.Rank] = own
	l.block = block
	l.each(c, func(r int) ([]byte, []byte) { return out(r), l.inputs[r] })
}

func (l *Layout) layOutRows(c *fabric.Call) {
	n := len(c.In)
	room := l.room(n)
	l.each(c, func(r int) ([]byte, []byte) { return c.In, room[r*n:][:n] })
}

// scatterRows interleaves what every rank brought, once all of it is here.
func (l *Layout) scatterRows() {
	c := l.Now
	if c.Op != fabric.AllGatherRows {
		return
	}
	n, row, world := len(c.In), c.RowBytes, l.World
	for r := range world {
		from := c.In
		if r != l.Rank {
			from = l.arena[r*n:][:n]
		}
		for i := 0; i*row < n; i++ {
			copy(c.Out[(i*world+r)*row:][:row], from[i*row:])
		}
	}
}

func (l *Layout) layOutBroadcast(c *fabric.Call) {
	if c.Root != l.Rank {
		s := l.span(c, c.Out, frame.Contribution)
		s.Rank = uint16(c.Root)
		l.ends.Receive(c.Root, s)
		return
	}
	for r := range l.World {
		if r != l.Rank {
			s := l.span(c, c.In, frame.Contribution)
			s.Rank = uint16(c.Root)
			l.ends.Send(r, s)
		}
	}
}

// layOutAllToAllV compares each block's length by its own header, since no rank knows all of them.
func (l *Layout) layOutAllToAllV(c *fabric.Call) {
	out, in := 0, 0
	for r := range l.World {
		to, from := c.In[in:][:c.InLengths[r]], c.Out[out:][:c.Lengths[r]]
		in, out = in+len(to), out+len(from)
		if r == l.Rank {
			l.own(from, to)
			continue
		}
		s := l.span(c, to, frame.Contribution)
		s.Total = uint64(len(to))
		l.ends.Send(r, s)
		s = l.span(c, from, frame.Contribution)
		s.Total = uint64(len(from))
		l.ends.Receive(r, s)
	}
}

func (l *Layout) layOutPair(c *fabric.Call) {
	if c.Sends() {
		s := l.span(c, c.In, frame.Contribution)
		s.Total, s.Rank = uint64(c.Bytes), uint16(c.Peer)
		l.ends.Send(c.Peer, s)
	}
	if c.Receives() {
		s := l.span(c, c.Out, frame.Contribution)
		s.Seq, s.Total, s.Rank = c.FromSeq, uint64(c.FromBytes), uint16(l.Rank)
		l.ends.Receive(c.From, s)
	}
}
