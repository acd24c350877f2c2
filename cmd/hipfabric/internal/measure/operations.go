package measure

import "github.com/hipfabric/hipfabric/fabric"

func (b *bench) reduction() {
	out := b.bytes
	if b.op == fabric.ReduceScatter {
		out /= b.world
	}
	b.buffers(b.bytes, out)
	all := make([][]byte, b.world)
	for r := range all {
		all[r] = make([]byte, b.bytes)
	}
	blocks := make([][]byte, b.world)
	b.expect = func(round int) {
		for r := range all {
			input(all[r], b.seed, r, round, b.dtype)
			blocks[r] = all[r]
			if b.op == fabric.ReduceScatter {
				blocks[r] = all[r][b.rank*out:][:out]
			}
		}
		reference(b.want, blocks, b.dtype, b.reduce)
	}
	if b.op == fabric.ReduceScatter {
		b.call = func() error { return b.c.ReduceScatter(b.out, b.in, b.dtype, b.reduce) }
		return
	}
	b.call = func() error { return b.c.AllReduce(b.out, b.in, b.dtype, b.reduce) }
}

// gather measures AllGatherV with lengths that fall from bytes at rank 0, and AllGatherRows with up to 16 rows.
func (b *bench) gather() {
	switch b.op {
	case fabric.AllGatherV:
		lengths := make([]int, b.world)
		for r := range lengths {
			lengths[r] = b.bytes / b.world * (b.world - r)
		}
		lengths[0] = b.bytes
		b.buffers(lengths[b.rank], b.bytes*b.world)
		b.call = func() error { return b.c.AllGatherV(b.out, b.in, b.bytes, lengths) }
		b.expect = func(round int) {
			for r, n := range lengths {
				copy(b.want[r*b.bytes:], b.contribution(r, n, round))
				if b.device != nil { // past its length a block is undefined
					fill(b.out[r*b.bytes+n:(r+1)*b.bytes], poison)
				}
			}
		}
	case fabric.AllGatherRows:
		row := max(1, b.bytes/16)
		b.bytes -= b.bytes % row
		b.buffers(b.bytes, b.bytes*b.world)
		b.call = func() error { return b.c.AllGatherRows(b.out, b.in, row) }
		b.expect = func(round int) {
			for r := range b.world {
				in := b.contribution(r, b.bytes, round)
				for i := 0; i*row < len(in); i++ {
					copy(b.want[(i*b.world+r)*row:], in[i*row:][:row])
				}
			}
		}
	default:
		b.buffers(b.bytes, b.bytes*b.world)
		b.call = func() error { return b.c.AllGather(b.out, b.in) }
		b.expect = func(round int) {
			for r := range b.world {
				copy(b.want[r*b.bytes:], b.contribution(r, b.bytes, round))
			}
		}
	}
}

// broadcast has rank 0 as its root.
func (b *bench) broadcast() {
	b.buffers(b.bytes, b.bytes)
	b.call = func() error { return b.c.Broadcast(b.out, 0) }
	b.expect = func(round int) { copy(b.want, b.contribution(0, b.bytes, round)) }
}

// block is what rank from gives rank to in an AllToAllV: at most an equal share, and not the same for all.
func (b *bench) block(from, to int) int {
	share := b.bytes / b.world
	if b.op == fabric.AllToAllV {
		share -= share / 2 / b.world * ((from + 2*to) % b.world)
	}
	return share
}

func (b *bench) exchangeAll() {
	in, out := make([]int, b.world), make([]int, b.world)
	ins, outs := 0, 0
	for r := range b.world {
		in[r], out[r] = b.block(b.rank, r), b.block(r, b.rank)
		ins, outs = ins+in[r], outs+out[r]
	}
	b.buffers(ins, outs)
	b.expect = func(round int) {
		at := 0
		for r := range b.world {
			before, total := 0, 0
			for to := range b.world {
				if to == b.rank {
					before = total
				}
				total += b.block(r, to)
			}
			at += copy(b.want[at:], b.contribution(r, total, round)[before:][:out[r]])
		}
	}
	if b.op == fabric.AllToAllV {
		b.call = func() error { return b.c.AllToAllV(b.out, b.in, out, in) }
		return
	}
	b.call = func() error { return b.c.AllToAll(b.out, b.in) }
}

// pair swaps within the pairs 0-1, 2-3, ... for Exchange and Send, and shifts around the ring for SendRecv.
func (b *bench) pair() {
	b.buffers(b.bytes, b.bytes)
	if b.op == fabric.SendRecv {
		to, from := (b.rank+1)%b.world, (b.rank+b.world-1)%b.world
		b.call = func() error { return b.c.SendRecv(b.in, to, b.out, from) }
		b.expect = func(round int) { copy(b.want, b.contribution(from, b.bytes, round)) }
		return
	}
	partner := b.partner()
	if partner < 0 {
		b.buffers(0, 0)
		return
	}
	b.expect = func(round int) { copy(b.want, b.contribution(partner, b.bytes, round)) }
	switch {
	case b.op == fabric.Exchange:
		b.call = func() error { return b.c.Exchange(b.out, b.in, partner) }
	case b.rank < partner:
		b.steps = 2
		b.call = func() error {
			return firstOf(b.c.Send(b.in, partner), func() error { return b.c.Recv(b.out, partner) })
		}
	default:
		b.steps = 2
		b.call = func() error {
			return firstOf(b.c.Recv(b.out, partner), func() error { return b.c.Send(b.in, partner) })
		}
	}
}

func firstOf(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}
