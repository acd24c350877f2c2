package fabric

// region is where a buffer lies, in host or in device memory.
type region struct {
	at uintptr
	n  int
}

func regionOf(b []byte) region { return region{start(b), len(b)} }

func (r region) overlaps(o region) bool {
	return r.n > 0 && o.n > 0 && r.at < o.at+uintptr(o.n) && o.at < r.at+uintptr(r.n)
}

// check validates a call's arguments for this rank and world and fills Class, Bytes, FromBytes and Hash. Every bound is
// here, for host and device buffers alike, so a path sees only calls that can be moved.
func check(c *Call, in, out region, rank, world int) error {
	if !c.Op.Valid() {
		return Invalidf("operation %d is none of the known ones", uint8(c.Op))
	}
	c.Class, c.Hash, c.Bytes, c.FromBytes = c.Op.Class(), 0, in.n, 0
	if c.Op.Reduces() {
		if err := checkReduction(c, in); err != nil {
			return err
		}
	}
	var err error
	if c.Class == Pair {
		err = checkPair(c, in, out, rank, world)
	} else {
		err = checkGroup(c, in, out, rank, world)
	}
	if err != nil {
		return err
	}
	return checkPart(c)
}

func checkReduction(c *Call, in region) error {
	if !c.DType.Valid() {
		return Invalidf("dtype %d is none of the known ones (%v)", uint8(c.DType), DTypes())
	}
	if !c.Reduce.Valid() {
		return Invalidf("reduction %d is none of the known ones (%v)", uint8(c.Reduce), ReduceOps())
	}
	if !c.Reduce.Takes(c.DType) {
		return Invalidf("reduction %v of %v: avg takes floating-point types only", c.Reduce, c.DType)
	}
	if in.n%c.DType.Size() != 0 {
		return Invalidf("in has %d bytes, not a multiple of the %d of one %v", in.n, c.DType.Size(), c.DType)
	}
	return nil
}

func checkGroup(c *Call, in, out region, rank, world int) error {
	switch c.Op {
	case AllReduce:
		if err := length("out", out.n, "len(in)", in.n); err != nil {
			return err
		}
		return apart(c, in, out, in.at == out.at, "out may be in itself")
	case ReduceScatter:
		if c.DType.Size() > 0 && out.n%c.DType.Size() != 0 {
			return Invalidf("out has %d bytes, not a multiple of the %d of one %v", out.n, c.DType.Size(), c.DType)
		}
		if err := length("in", in.n, "world * len(out)", world*out.n); err != nil {
			return err
		}
		return apart(c, in, out, false, "none is allowed")
	case AllGather:
		if err := length("out", out.n, "world * len(in)", world*in.n); err != nil {
			return err
		}
		return apart(c, in, out, in.at == out.at+uintptr(rank*in.n), "in may be this rank's own block of out")
	case AllGatherV:
		return checkGatherV(c, in, out, rank, world)
	case AllGatherRows:
		if c.RowBytes <= 0 {
			return Invalidf("rowBytes is %d; at least 1 is needed", c.RowBytes)
		}
		if in.n%c.RowBytes != 0 {
			return Invalidf("in has %d bytes, not a multiple of rowBytes %d", in.n, c.RowBytes)
		}
		if err := length("out", out.n, "world * len(in)", world*in.n); err != nil {
			return err
		}
		c.Hash = uint64(c.RowBytes)
		return apart(c, in, out, false, "none is allowed")
	case Broadcast:
		if c.Root < 0 || c.Root >= world {
			return Invalidf("root %d is outside 0..%d", c.Root, world-1)
		}
		if rank == c.Root {
			return empty("out", out, "of a broadcast's root")
		}
		c.Bytes = out.n
		return empty("in", in, "of a rank that is not the broadcast's root")
	case AllToAll:
		if in.n%world != 0 {
			return Invalidf("in has %d bytes, not a multiple of world %d", in.n, world)
		}
		if err := length("out", out.n, "len(in)", in.n); err != nil {
			return err
		}
		return apart(c, in, out, false, "none is allowed")
	case AllToAllV:
		c.Bytes = 0
		if err := vector("outLengths", c.Lengths, world, out.n, "out"); err != nil {
			return err
		}
		if err := vector("inLengths", c.InLengths, world, in.n, "in"); err != nil {
			return err
		}
		if c.Lengths[rank] != c.InLengths[rank] {
			return Invalidf("outLengths[%d] is %d and inLengths[%d] is %d; a rank's block for itself has one length",
				rank, c.Lengths[rank], rank, c.InLengths[rank])
		}
		return apart(c, in, out, false, "none is allowed")
	default: // Barrier
		if err := empty("in", in, "of a barrier"); err != nil {
			return err
		}
		return empty("out", out, "of a barrier")
	}
}

func checkGatherV(c *Call, in, out region, rank, world int) error {
	if c.Stride < 0 || (world > 0 && c.Stride > out.n/world) {
		return Invalidf("stride %d: world %d blocks of it must lie in out's %d bytes", c.Stride, world, out.n)
	}
	c.Bytes = c.Stride
	own := in.at == out.at+uintptr(rank*c.Stride)
	if c.Device.Lengths != 0 { // only the device knows them before the stream reaches the call
		if err := length("in", in.n, "stride", c.Stride); err != nil {
			return err
		}
		return apart(c, in, out, own, "in may be this rank's own block of out")
	}
	if len(c.Lengths) != world {
		return Invalidf("lengths has %d entries; world %d needs as many", len(c.Lengths), world)
	}
	for r, n := range c.Lengths {
		if n < 0 || n > c.Stride {
			return Invalidf("lengths[%d] is %d, outside 0..stride %d", r, n, c.Stride)
		}
	}
	if err := length("in", in.n, "lengths[rank]", c.Lengths[rank]); err != nil {
		return err
	}
	c.Hash = HashLengths(c.Lengths)
	return apart(c, in, out, own, "in may be this rank's own block of out")
}

func checkPair(c *Call, in, out region, rank, world int) error {
	if c.Op == Exchange {
		c.From = c.Peer
		if err := length("out", out.n, "len(in)", in.n); err != nil {
			return err
		}
	}
	whole := c.Op == SendRecv && !c.cut()
	if c.Sends() || whole {
		if err := peer("peer", c.Peer, rank, world); err != nil {
			return err
		}
	} else {
		c.Peer, c.Bytes = -1, out.n
		if err := empty("in", in, "of a call that sends nothing"); err != nil {
			return err
		}
	}
	if c.Receives() || whole {
		c.FromBytes = out.n
		if err := peer("from", c.From, rank, world); err != nil {
			return err
		}
	} else {
		c.From = -1
		if err := empty("out", out, "of a call that receives nothing"); err != nil {
			return err
		}
	}
	if c.Peer < 0 && c.From < 0 {
		return Invalidf("a part of a send-recv that neither sends nor receives")
	}
	return apart(c, in, out, false, "none is allowed")
}

// checkPart holds a part of a call to the whole of it, which is what ranks compare.
func checkPart(c *Call) error {
	switch {
	case c.Whole < 0 || c.FromWhole < 0:
		return Invalidf("whole is %d and fromWhole %d bytes; 0 or more are needed", c.Whole, c.FromWhole)
	case c.FromWhole > 0 && c.Op != SendRecv:
		return Invalidf("fromWhole is %d; it is a send-recv's only", c.FromWhole)
	case !c.cut() && c.Part > 0:
		return Invalidf("part %d of a call without a whole", c.Part)
	case !c.cut():
		return nil
	case c.Op == Barrier:
		return Invalidf("a barrier has no parts; whole is %d", c.Whole)
	}
	from := c.Whole
	if c.Op == SendRecv {
		from = c.FromWhole
	}
	if c.Class == Pair && c.FromBytes > from {
		return Invalidf("out has %d bytes; all of the call has %d", c.FromBytes, from)
	}
	if c.Bytes > c.Whole && (c.Class == Group || c.Sends()) {
		return Invalidf("a part has %d bytes; all of the call has %d", c.Bytes, c.Whole)
	}
	c.Bytes, c.FromBytes = c.Whole, from
	if c.WholeHash != 0 && (c.Op == AllGatherV || c.Op == AllGatherRows) {
		c.Hash = c.WholeHash
	}
	c.Hash ^= uint64(c.Part) << HashPartShift
	return nil
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

func empty(what string, b region, of string) error {
	if b.n != 0 {
		return Invalidf("%s %s has %d bytes; it takes none", what, of, b.n)
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
func apart(c *Call, in, out region, inPlace bool, rule string) error {
	if in.overlaps(out) && !inPlace {
		return Invalidf("in and out overlap; for %v %s", c.Op, rule)
	}
	return nil
}
