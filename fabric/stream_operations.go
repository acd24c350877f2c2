package fabric

// AllReduce combines count numbers of every rank's in, in rank order, into every rank's out; out may be in itself.
// Errors, here and below, as on StreamCollective.
func (c *StreamCollective) AllReduce(s Stream, out, in DevPtr, count int, dt DType, op ReduceOp) error {
	n, bad := sized("count", count, dt.Size())
	return c.queue(s, &Call{Op: AllReduce, DType: dt, Reduce: op, Device: OnDevice{In: in, Out: out, InBytes: n, OutBytes: n}}, bad)
}

// ReduceScatter combines as AllReduce and gives rank r block r of the result: count numbers in out, world * count in in.
func (c *StreamCollective) ReduceScatter(s Stream, out, in DevPtr, count int, dt DType, op ReduceOp) error {
	n, bad := sized("count", count, dt.Size()*c.world)
	return c.queue(s, &Call{Op: ReduceScatter, DType: dt, Reduce: op, Device: OnDevice{In: in, Out: out, InBytes: n, OutBytes: n / c.world}}, bad)
}

// AllGather puts bytes of every rank's in into every rank's out, in rank order: out has world * bytes. in may be this
// rank's own block of out.
func (c *StreamCollective) AllGather(s Stream, out, in DevPtr, bytes int) error {
	n, bad := sized("bytes", bytes, c.world)
	return c.queue(s, &Call{Op: AllGather, Device: OnDevice{In: in, Out: out, InBytes: bytes, OutBytes: n}}, bad)
}

// AllGatherV puts rank r's lengths[r] bytes at out + r*stride; the bytes of a block past its length are left alone.
// stride and lengths, in bytes, are the same on every rank. in may be this rank's own block of out.
func (c *StreamCollective) AllGatherV(s Stream, out, in DevPtr, stride int, lengths []int) error {
	n, bad := sized("stride", stride, c.world)
	mine := 0
	if len(lengths) == c.world {
		mine = max(lengths[c.rank], 0)
	}
	return c.queue(s, &Call{Op: AllGatherV, Stride: stride, Lengths: lengths, Device: OnDevice{In: in, Out: out, InBytes: mine, OutBytes: n}}, bad)
}

// AllGatherVDevice is AllGatherV with lengths that only the device knows when it queues: an int32[world] in device memory,
// in bytes, the same on every rank, read when the stream reaches the call. in has stride bytes, of which its own length
// count. A length outside 0..stride ends the group: ErrAborted, whose text names the entry.
func (c *StreamCollective) AllGatherVDevice(s Stream, out, in DevPtr, stride int, lengths DevPtr) error {
	n, bad := sized("stride", stride, c.world)
	if bad == nil && lengths == 0 {
		bad = Invalidf("lengths is a nil device address; it needs an int32 a rank")
	}
	return c.queue(s, &Call{Op: AllGatherV, Stride: stride, Device: OnDevice{In: in, Out: out, InBytes: stride, OutBytes: n, Lengths: lengths}}, bad)
}

// AllGatherRows interleaves bytes of every rank: row i of rank r, rowBytes long, lands at out + (i*world+r)*rowBytes.
func (c *StreamCollective) AllGatherRows(s Stream, out, in DevPtr, bytes, rowBytes int) error {
	n, bad := sized("bytes", bytes, c.world)
	return c.queue(s, &Call{Op: AllGatherRows, RowBytes: rowBytes, Device: OnDevice{In: in, Out: out, InBytes: bytes, OutBytes: n}}, bad)
}

// Broadcast puts bytes of root's buf into every rank's buf.
func (c *StreamCollective) Broadcast(s Stream, buf DevPtr, bytes, root int) error {
	n, bad := sized("bytes", bytes, 1)
	call := Call{Op: Broadcast, Root: root}
	if root == c.rank {
		call.Device.In, call.Device.InBytes = buf, n
	} else {
		call.Device.Out, call.Device.OutBytes = buf, n
	}
	return c.queue(s, &call, bad)
}

// AllToAll puts block [me] of rank r's in into block r of out. Blocks are bytes long: in and out have world * bytes.
func (c *StreamCollective) AllToAll(s Stream, out, in DevPtr, bytes int) error {
	n, bad := sized("bytes", bytes, c.world)
	return c.queue(s, &Call{Op: AllToAll, Device: OnDevice{In: in, Out: out, InBytes: n, OutBytes: n}}, bad)
}

// AllToAllV is AllToAll with blocks of any length, packed in rank order without gaps: outLengths[r] bytes come from
// rank r, inLengths[r] go to it.
func (c *StreamCollective) AllToAllV(s Stream, out, in DevPtr, outLengths, inLengths []int) error {
	return c.queue(s, &Call{Op: AllToAllV, Lengths: outLengths, InLengths: inLengths,
		Device: OnDevice{In: in, Out: out, InBytes: sum(inLengths), OutBytes: sum(outLengths)}}, nil)
}

// Exchange swaps bytes of in for the peer's, full duplex. Both sides call it, with the same length.
func (c *StreamCollective) Exchange(s Stream, out, in DevPtr, bytes, peer int) error {
	n, bad := sized("bytes", bytes, 1)
	return c.queue(s, &Call{Op: Exchange, Peer: peer, Device: OnDevice{In: in, Out: out, InBytes: n, OutBytes: n}}, bad)
}

// SendRecv sends to one rank while it receives from another, or from the same: a ring shift. It is met by the other
// ranks' SendRecv.
func (c *StreamCollective) SendRecv(s Stream, send DevPtr, sendBytes, to int, recv DevPtr, recvBytes, from int) error {
	in, bad := sized("sendBytes", sendBytes, 1)
	out, worse := sized("recvBytes", recvBytes, 1)
	if bad == nil {
		bad = worse
	}
	return c.queue(s, &Call{Op: SendRecv, Peer: to, From: from, Device: OnDevice{In: send, Out: recv, InBytes: in, OutBytes: out}}, bad)
}

// Send sends bytes of buf to peer's Recv of the same length; the sends of an ordered pair are matched in order. The
// stream may pass it once the path holds the bytes. Two ranks that Send to each other may both wait: SendRecv and Exchange
// never do.
func (c *StreamCollective) Send(s Stream, buf DevPtr, bytes, peer int) error {
	n, bad := sized("bytes", bytes, 1)
	return c.queue(s, &Call{Op: Send, Peer: peer, Device: OnDevice{In: buf, InBytes: n}}, bad)
}

// Recv receives peer's next Send, which must be of as many bytes, into buf.
func (c *StreamCollective) Recv(s Stream, buf DevPtr, bytes, peer int) error {
	n, bad := sized("bytes", bytes, 1)
	return c.queue(s, &Call{Op: Recv, From: peer, Device: OnDevice{Out: buf, OutBytes: n}}, bad)
}

// Barrier holds s until every rank's stream has reached it.
func (c *StreamCollective) Barrier(s Stream) error { return c.queue(s, &Call{Op: Barrier}, nil) }

// sized is n units of so many bytes each.
func sized(what string, n, unit int) (int, error) {
	if most := maxAlloc / max(unit, 1); n < 0 || n > most {
		return 0, Invalidf("%s is %d; 0 to %d are possible", what, n, most)
	}
	return n * unit, nil
}

// sum is the bytes of a vector whose entries are still to be checked: none can pass for less than it is.
func sum(lengths []int) int {
	total := 0
	for _, n := range lengths {
		total += min(max(n, 0), maxAlloc-total)
	}
	return total
}
