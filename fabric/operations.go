package fabric

// AllReduce combines every rank's in, in rank order, into every rank's out. Both have the same length, a multiple of
// dt's size, on every rank; out may be in itself. Errors as on Collective.
func (c *Collective) AllReduce(out, in []byte, dt DType, op ReduceOp) error {
	return c.do(&Call{Op: AllReduce, Out: out, In: in, DType: dt, Reduce: op})
}

// ReduceScatter combines as AllReduce and gives rank r block r of the result: len(in) is world * len(out).
func (c *Collective) ReduceScatter(out, in []byte, dt DType, op ReduceOp) error {
	return c.do(&Call{Op: ReduceScatter, Out: out, In: in, DType: dt, Reduce: op})
}

// AllGather puts every rank's in into every rank's out, in rank order: len(out) is world * len(in). in may be this
// rank's own block of out.
func (c *Collective) AllGather(out, in []byte) error {
	return c.do(&Call{Op: AllGather, Out: out, In: in})
}

// AllGatherV puts rank r's lengths[r] bytes at out[r*stride:]; the bytes of a block past its length are left alone.
// stride and lengths, in bytes, are the same on every rank. in may be this rank's own block of out.
func (c *Collective) AllGatherV(out, in []byte, stride int, lengths []int) error {
	return c.do(&Call{Op: AllGatherV, Out: out, In: in, Stride: stride, Lengths: lengths})
}

// AllGatherRows interleaves: row i of rank r, rowBytes long, lands at out[(i*world+r)*rowBytes:].
func (c *Collective) AllGatherRows(out, in []byte, rowBytes int) error {
	return c.do(&Call{Op: AllGatherRows, Out: out, In: in, RowBytes: rowBytes})
}

// Broadcast puts root's buf into every rank's buf; all have the same length.
func (c *Collective) Broadcast(buf []byte, root int) error {
	call := Call{Op: Broadcast, Root: root}
	if root == c.rank {
		call.In = buf
	} else {
		call.Out = buf
	}
	return c.do(&call)
}

// AllToAll puts block [me] of rank r's in into block r of out. Blocks are len(in)/world bytes.
func (c *Collective) AllToAll(out, in []byte) error {
	return c.do(&Call{Op: AllToAll, Out: out, In: in})
}

// AllToAllV is AllToAll with blocks of any length, packed in rank order without gaps: outLengths[r] bytes come from
// rank r, inLengths[r] go to it, and they sum to the buffers' lengths.
func (c *Collective) AllToAllV(out, in []byte, outLengths, inLengths []int) error {
	return c.do(&Call{Op: AllToAllV, Out: out, In: in, Lengths: outLengths, InLengths: inLengths})
}

// Exchange swaps in for the peer's, full duplex. Both sides call it, with the same length.
func (c *Collective) Exchange(out, in []byte, peer int) error {
	return c.do(&Call{Op: Exchange, Out: out, In: in, Peer: peer})
}

// SendRecv sends to one rank while it receives from another, or from the same: a ring shift. It is met by the other
// ranks' SendRecv.
func (c *Collective) SendRecv(send []byte, to int, recv []byte, from int) error {
	return c.do(&Call{Op: SendRecv, In: send, Peer: to, Out: recv, From: from})
}

// Send sends buf to peer's Recv of the same length; the sends of an ordered pair are matched in order. It may return
// once the path holds the bytes. Two ranks that Send to each other may both wait: SendRecv and Exchange never do.
func (c *Collective) Send(buf []byte, peer int) error {
	return c.do(&Call{Op: Send, In: buf, Peer: peer})
}

// Recv receives peer's next Send, which must be of len(buf).
func (c *Collective) Recv(buf []byte, peer int) error {
	return c.do(&Call{Op: Recv, Out: buf, From: peer})
}

// Barrier returns when every rank has entered it and this rank's earlier calls are done.
func (c *Collective) Barrier() error {
	return c.do(&Call{Op: Barrier})
}
