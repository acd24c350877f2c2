package tcp

import (
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// begin lays a call out: which spans go to and come from each peer, and what this rank does for itself.
func (p *pending) begin(c *fabric.Call) {
	t := p.t
	p.call, p.moved, p.active, p.sockets = c, 0, p.active[:0], 0
	p.ownOut, p.ownIn, p.block, p.combined, p.overwrites = nil, nil, nil, 0, false
	h := &t.header
	h.Class, h.Op, h.DType, h.Reduce, h.Hash = c.Class, c.Op, c.DType, c.Reduce, c.Hash
	if c.Op == fabric.Recv {
		h.Op = fabric.Send // what the frames of the other side say
	}
	if !c.Op.Reduces() {
		h.DType, h.Reduce = 0, 0
	}
	for _, f := range p.laid {
		f.begin()
	}
	p.laid = p.laid[:0]
	p.layOut(c)
	p.moves = len(p.ownIn) == 0 && len(p.block) == 0 && c.Op != fabric.AllGatherRows
	for _, f := range p.laid {
		f.orderCall()
		p.active = append(p.active, f)
		p.sockets += f.wake()
	}
}

// peer takes part in the call from now on.
func (p *pending) peer(r int) *peer {
	f := &p.t.peers[r]
	if f.outs+f.ins == 0 {
		p.laid = append(p.laid, f)
	}
	return f
}

// wake readies the lanes for a call, and counts them.
func (f *peer) wake() int {
	for _, l := range f.lanes {
		if l.held = false; l.conn != nil {
			l.conn.Readable, l.conn.Writable = true, true
		}
	}
	return f.up
}

func (p *pending) layOut(c *fabric.Call) {
	switch c.Op {
	case fabric.AllReduce:
		p.layOutAllReduce(c)
	case fabric.ReduceScatter:
		p.layOutReduceScatter(c)
	case fabric.AllGather:
		n := len(c.In)
		p.own(c.Out[p.t.rank*n:], c.In)
		p.each(c, func(r int) ([]byte, []byte) { return c.In, c.Out[r*n : (r+1)*n] })
	case fabric.AllGatherV:
		p.own(c.Out[p.t.rank*c.Stride:], c.In)
		p.each(c, func(r int) ([]byte, []byte) { return c.In, c.Out[r*c.Stride:][:c.Lengths[r]] })
	case fabric.AllGatherRows:
		p.layOutRows(c)
	case fabric.Broadcast:
		p.layOutBroadcast(c)
	case fabric.AllToAll:
		n := len(c.In) / p.t.world
		p.own(c.Out[p.t.rank*n:], c.In[p.t.rank*n:][:n])
		p.each(c, func(r int) ([]byte, []byte) { return c.In[r*n:][:n], c.Out[r*n:][:n] })
	case fabric.AllToAllV:
		p.layOutAllToAllV(c)
	case fabric.Barrier:
		p.each(c, func(int) ([]byte, []byte) { return nil, nil })
	default:
		p.layOutPair(c)
	}
}

// own is this rank's block for itself, copied while it waits for the others.
func (p *pending) own(out, in []byte) { p.ownOut, p.ownIn = out, in }

// each gives every peer a span each way.
func (p *pending) each(c *fabric.Call, spans func(r int) (out, in []byte)) {
	for r := range p.t.peers {
		if r == p.t.rank {
			continue
		}
		out, in := spans(r)
		p.peer(r).send(p.span(c, out, frame.Contribution))
		p.peer(r).receive(p.span(c, in, frame.Contribution))
	}
}

// span is one of a call of the group's sequence.
func (p *pending) span(c *fabric.Call, buf []byte, step frame.Step) span {
	return span{buf: buf, seq: c.Seq, total: uint64(c.Bytes), rank: frame.NoRank, step: step}
}

// room is where the contributions of the other ranks land: world blocks of n bytes, this rank's unused.
func (p *pending) room(n int) []byte {
	if need := n * p.t.world; cap(p.arena) < need {
		p.arena = make([]byte, need)
	}
	return p.arena[:n*p.t.world]
}

// layOutAllReduce is one-shot up to EagerBytes: everybody's bytes to everybody. Above, it goes direct: each rank
// combines its own block of all ranks' bytes and sends the result to all.
func (p *pending) layOutAllReduce(c *fabric.Call) {
	t, n := p.t, len(c.In)
	if n <= t.c.EagerBytes {
		p.overwrites = n > 0 && &c.In[0] == &c.Out[0]
		p.gather(c, c.Out, c.In, n, func(int) []byte { return c.In })
		return
	}
	at := func(r int) int { return blockAt(n, c.DType.Size(), t.world, r) }
	own := at(t.rank+1) - at(t.rank)
	mine := c.Out[at(t.rank):at(t.rank+1)]
	p.gather(c, mine, c.In[at(t.rank):at(t.rank+1)], own, func(r int) []byte { return c.In[at(r):at(r+1)] })
	for r := range t.peers {
		if r != t.rank {
			p.peer(r).send(p.span(c, mine, frame.Result))
			p.peer(r).receive(p.span(c, c.Out[at(r):at(r+1)], frame.Result))
		}
	}
}

// blockAt is where block r of n bytes begins, when world blocks of whole elements share them.
func blockAt(n, size, world, r int) int {
	each := (n/size + world - 1) / world
	return min(each*r*size, n)
}

func (p *pending) layOutReduceScatter(c *fabric.Call) {
	n := len(c.Out)
	p.gather(c, c.Out, c.In[p.t.rank*n:][:n], n, func(r int) []byte { return c.In[r*n:][:n] })
}

// gather lets every peer's n bytes land in the arena, to be combined with this rank's own into block.
func (p *pending) gather(c *fabric.Call, block, own []byte, n int, out func(r int) []byte) {
	room := p.room(n)
	for r := range p.t.peers {
		p.inputs[r] = room[r*n:][:n]
	}
	p.inputs[p.t.rank] = own
	p.block = block
	p.each(c, func(r int) ([]byte, []byte) { return out(r), p.inputs[r] })
}

func (p *pending) layOutRows(c *fabric.Call) {
	n := len(c.In)
	room := p.room(n)
	p.each(c, func(r int) ([]byte, []byte) { return c.In, room[r*n:][:n] })
}

// scatterRows interleaves what every rank brought, once all of it is here.
func (p *pending) scatterRows() {
	c := p.call
	if c.Op != fabric.AllGatherRows {
		return
	}
	n, row, world := len(c.In), c.RowBytes, p.t.world
	for r := range world {
		from := c.In
		if r != p.t.rank {
			from = p.arena[r*n:][:n]
		}
		for i := 0; i*row < n; i++ {
			copy(c.Out[(i*world+r)*row:][:row], from[i*row:])
		}
	}
}

func (p *pending) layOutBroadcast(c *fabric.Call) {
	if c.Root != p.t.rank {
		s := p.span(c, c.Out, frame.Contribution)
		s.rank = uint16(c.Root)
		p.peer(c.Root).receive(s)
		return
	}
	for r := range p.t.peers {
		if r != p.t.rank {
			s := p.span(c, c.In, frame.Contribution)
			s.rank = uint16(c.Root)
			p.peer(r).send(s)
		}
	}
}

// layOutAllToAllV compares each block's length by its own header, since no rank knows all of them.
func (p *pending) layOutAllToAllV(c *fabric.Call) {
	t := p.t
	out, in := 0, 0
	for r := range t.peers {
		to, from := c.In[in:][:c.InLengths[r]], c.Out[out:][:c.Lengths[r]]
		in, out = in+len(to), out+len(from)
		if r == t.rank {
			p.own(from, to)
			continue
		}
		s := p.span(c, to, frame.Contribution)
		s.total = uint64(len(to))
		p.peer(r).send(s)
		s = p.span(c, from, frame.Contribution)
		s.total = uint64(len(from))
		p.peer(r).receive(s)
	}
}

func (p *pending) layOutPair(c *fabric.Call) {
	if c.Sends() {
		s := p.span(c, c.In, frame.Contribution)
		s.total, s.rank = uint64(c.Bytes), uint16(c.Peer)
		p.peer(c.Peer).send(s)
	}
	if c.Receives() {
		s := p.span(c, c.Out, frame.Contribution)
		s.seq, s.total, s.rank = c.FromSeq, uint64(c.FromBytes), uint16(p.t.rank)
		p.peer(c.From).receive(s)
	}
}
