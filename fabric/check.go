package fabric

// check validates a call's arguments for this rank and world and fills Class, Bytes and Hash. Every bound is here, so
// a Transport sees only calls that can be moved.
func check(c *Call, rank, world int) error {
	if !c.Op.Valid() {
		return Invalidf("operation %d is none of the known ones", uint8(c.Op))
	}
	c.Class, c.Hash, c.Bytes = c.Op.Class(), 0, len(c.In)
	if c.Op.Reduces() {
		if err := checkReduction(c); err != nil {
			return err
		}
	}
	if c.Class == Pair {
		return checkPair(c, rank, world)
	}
	return checkGroup(c, rank, world)
}

func checkReduction(c *Call) error {
	if !c.DType.Valid() {
		return Invalidf("dtype %d is none of the known ones (%v)", uint8(c.DType), DTypes())
	}
	if !c.Reduce.Valid() {
		return Invalidf("reduction %d is none of the known ones (%v)", uint8(c.Reduce), ReduceOps())
	}
	if !c.Reduce.Takes(c.DType) {
		return Invalidf("reduction %v of %v: avg takes floating-point types only", c.Reduce, c.DType)
	}
	if len(c.In)%c.DType.Size() != 0 {
		return Invalidf("in has %d bytes, not a multiple of the %d of one %v", len(c.In), c.DType.Size(), c.DType)
	}
	return nil
}

func checkGroup(c *Call, rank, world int) error {
	switch c.Op {
	case AllReduce:
		if err := length("out", len(c.Out), "len(in)", len(c.In)); err != nil {
			return err
		}
		return apart(c, sameStart(c.Out, c.In), "out may be in itself")
	case ReduceScatter:
		if c.DType.Size() > 0 && len(c.Out)%c.DType.Size() != 0 {
			return Invalidf("out has %d bytes, not a multiple of the %d of one %v", len(c.Out), c.DType.Size(), c.DType)
		}
		if err := length("in", len(c.In), "world * len(out)", world*len(c.Out)); err != nil {
			return err
		}
		return apart(c, false, "none is allowed")
	case AllGather:
		if err := length("out", len(c.Out), "world * len(in)", world*len(c.In)); err != nil {
			return err
		}
		return apart(c, len(c.In) > 0 && sameStart(c.In, c.Out[rank*len(c.In):]), "in may be this rank's own block of out")
	case AllGatherV:
		return checkGatherV(c, rank, world)
	case AllGatherRows:
		if c.RowBytes <= 0 {
			return Invalidf("rowBytes is %d; at least 1 is needed", c.RowBytes)
		}
		if len(c.In)%c.RowBytes != 0 {
			return Invalidf("in has %d bytes, not a multiple of rowBytes %d", len(c.In), c.RowBytes)
		}
		if err := length("out", len(c.Out), "world * len(in)", world*len(c.In)); err != nil {
			return err
		}
		c.Hash = uint64(c.RowBytes)
		return apart(c, false, "none is allowed")
	case Broadcast:
		if c.Root < 0 || c.Root >= world {
			return Invalidf("root %d is outside 0..%d", c.Root, world-1)
		}
		if rank == c.Root {
			c.Bytes = len(c.In)
			return empty("out", c.Out, "of a broadcast's root")
		}
		c.Bytes = len(c.Out)
		return empty("in", c.In, "of a rank that is not the broadcast's root")
	case AllToAll:
		if len(c.In)%world != 0 {
			return Invalidf("in has %d bytes, not a multiple of world %d", len(c.In), world)
		}
		if err := length("out", len(c.Out), "len(in)", len(c.In)); err != nil {
			return err
		}
		return apart(c, false, "none is allowed")
	case AllToAllV:
		c.Bytes = 0
		if err := vector("outLengths", c.Lengths, world, len(c.Out), "out"); err != nil {
			return err
		}
		if err := vector("inLengths", c.InLengths, world, len(c.In), "in"); err != nil {
			return err
		}
		if c.Lengths[rank] != c.InLengths[rank] {
			return Invalidf("outLengths[%d] is %d and inLengths[%d] is %d; a rank's block for itself has one length",
				rank, c.Lengths[rank], rank, c.InLengths[rank])
		}
		return apart(c, false, "none is allowed")
	default: // Barrier
		if err := empty("in", c.In, "of a barrier"); err != nil {
			return err
		}
		return empty("out", c.Out, "of a barrier")
	}
}

func checkGatherV(c *Call, rank, world int) error {
	if len(c.Lengths) != world {
		return Invalidf("lengths has %d entries; world %d needs as many", len(c.Lengths), world)
	}
	if c.Stride < 0 || (world > 0 && c.Stride > len(c.Out)/world) {
		return Invalidf("stride %d: world %d blocks of it must lie in out's %d bytes", c.Stride, world, len(c.Out))
	}
	for r, n := range c.Lengths {
		if n < 0 || n > c.Stride {
			return Invalidf("lengths[%d] is %d, outside 0..stride %d", r, n, c.Stride)
		}
	}
	if err := length("in", len(c.In), "lengths[rank]", c.Lengths[rank]); err != nil {
		return err
	}
	c.Bytes, c.Hash = c.Stride, hashLengths(c.Lengths)
	return apart(c, len(c.In) > 0 && sameStart(c.In, c.Out[rank*c.Stride:]), "in may be this rank's own block of out")
}

func checkPair(c *Call, rank, world int) error {
	if c.Op == Exchange {
		c.From = c.Peer
		if err := length("out", len(c.Out), "len(in)", len(c.In)); err != nil {
			return err
		}
	}
	if c.Sends() {
		if err := peer("peer", c.Peer, rank, world); err != nil {
			return err
		}
	} else {
		c.Peer, c.Bytes = -1, len(c.Out)
		if err := empty("in", c.In, "of a recv"); err != nil {
			return err
		}
	}
	if c.Receives() {
		if err := peer("from", c.From, rank, world); err != nil {
			return err
		}
	} else {
		c.From = -1
		if err := empty("out", c.Out, "of a send"); err != nil {
			return err
		}
	}
	return apart(c, false, "none is allowed")
}

func peer(what string, p, rank, world int) error {
	if p < 0 || p >= world {
		return Invalidf("%s %d is outside 0..%d", what, p, world-1)
	}
	if p == rank {
		return Invalidf("%s %d is this rank itself", what, p)
	}
	return nil
}

func length(what string, have int, rule string, want int) error {
	if have != want {
		return Invalidf("%s has %d bytes; %s is %d", what, have, rule, want)
	}
	return nil
}

func empty(what string, b []byte, of string) error {
	if len(b) != 0 {
		return Invalidf("%s %s has %d bytes; it takes none", what, of, len(b))
	}
	return nil
}

func vector(what string, lengths []int, world, total int, buffer string) error {
	if len(lengths) != world {
		return Invalidf("%s has %d entries; world %d needs as many", what, len(lengths), world)
	}
	left := total
	for r, n := range lengths {
		if n < 0 || n > left {
			return Invalidf("%s[%d] is %d; %s has %d bytes left for it", what, r, n, buffer, left)
		}
		left -= n
	}
	if left != 0 {
		return Invalidf("%s sums to %d; %s has %d bytes", what, total-left, buffer, total)
	}
	return nil
}

// apart refuses overlapping buffers unless they lie in the one place the operation allows.
func apart(c *Call, inPlace bool, rule string) error {
	if overlap(c.In, c.Out) && !inPlace {
		return Invalidf("in and out overlap; for %v %s", c.Op, rule)
	}
	return nil
}
