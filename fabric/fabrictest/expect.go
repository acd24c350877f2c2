package fabrictest

import (
	"bytes"
	"sync"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/reduce"
)

// share is what one rank does in a case and what it must find afterwards.
type share struct {
	idle bool // this rank has no part in it
	call Call // without buffers
	in   []byte
	at   int    // in place: where in out in lies; -1 elsewhere
	want []byte // out afterwards, bytes that must not be written included; nil when there is none
}

// source gives each rank the same bytes for the same case, whoever asks.
type source struct {
	zero bool // the bytes are all 0
	mu   sync.Mutex
	pool map[poolKey][]byte
}

type poolKey struct {
	dtype fabric.DType
	rank  int
}

// poolBytes holds the largest input at any of the offsets.
const (
	poolBytes   = maxWorld*3*PartBytes + 8*poolOffsets
	poolOffsets = 1021
)

func (s *source) take(c valueCase, rank, n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := poolKey{c.dtype, rank}
	if s.pool == nil {
		s.pool = map[poolKey][]byte{}
	}
	if s.pool[k] == nil {
		s.pool[k] = make([]byte, poolBytes)
		if !s.zero {
			s.pool[k] = noise(c.dtype, uint64(rank)<<8|uint64(c.dtype), poolBytes)
		}
	}
	at := c.index % poolOffsets * c.elementBytes()
	return s.pool[k][at : at+n : at+n]
}

// noise is any bits; of floats, three elements of four are between 1 and 2 or their negatives, where the order of a sum
// shows.
func noise(dt fabric.DType, seed uint64, n int) []byte {
	b := make([]byte, n)
	state := seed
	for i := range b {
		state = state*6364136223846793005 + 1442695040888963407
		b[i] = byte(state >> 56)
	}
	size := dt.Size()
	for i := 0; dt.Float() && i+size <= n; i += size {
		if i/size%4 == 0 {
			continue
		}
		high, low := &b[i+size-1], &b[i+size-2]
		switch dt { // the exponent of 1, in the two high bytes
		case fabric.F16:
			*high = *high&0x83 | 0x3c
		case fabric.F64:
			*high, *low = *high&0x80|0x3f, *low&0x0f|0xf0
		default:
			*high, *low = *high&0x80|0x3f, *low&0x7f|0x80
		}
	}
	return b
}

// fill is what out holds before a case, another one each time, so that no result of an earlier case passes.
func (c valueCase) fill() byte { return byte(c.index*37 + 0xa5) }

func (c valueCase) blank(n int) []byte { return bytes.Repeat([]byte{c.fill()}, n) }

// shares computes a case for all ranks by plain copies and reduce.Combine.
func (c valueCase) shares(src *source) []share {
	n := c.bytes()
	all := make([]share, c.world)
	for r := range all {
		all[r] = share{call: Call{Op: c.op, DType: c.dtype, Reduce: c.reduce}, at: -1}
	}
	switch c.op {
	case fabric.AllReduce, fabric.ReduceScatter:
		c.reductions(all, src, n)
	case fabric.AllGather, fabric.AllGatherV, fabric.AllGatherRows:
		c.gathers(all, src, n)
	case fabric.AllToAll, fabric.AllToAllV:
		c.transposes(all, src, n)
	case fabric.Broadcast:
		root := c.index % c.world
		in := src.take(c, root, n)
		for r := range all {
			all[r].call.Root, all[r].want = root, in
		}
		all[root].in, all[root].want = in, nil
	case fabric.Barrier:
	default:
		c.pairs(all, src, n)
	}
	return all
}

func (c valueCase) reductions(all []share, src *source, n int) {
	whole := n
	if c.op == fabric.ReduceScatter {
		whole = n * c.world
	}
	ins := make([][]byte, c.world)
	for r := range all {
		ins[r] = src.take(c, r, whole)
	}
	out := make([]byte, whole)
	reduce.Combine(out, ins, c.dtype, c.reduce)
	for r := range all {
		all[r].in, all[r].want = ins[r], out
		if c.op == fabric.ReduceScatter {
			all[r].want = out[r*n : (r+1)*n]
		}
		if c.inPlace {
			all[r].at = 0
		}
	}
}

func (c valueCase) gathers(all []share, src *source, n int) {
	stride, lengths := n, make([]int, c.world)
	for r := range lengths {
		lengths[r] = n
		if c.op == fabric.AllGatherV {
			stride, lengths[r] = n+c.index%3, uneven(n, r+c.index)
		}
	}
	row := rowOf(n, c.index)
	want := c.blank(stride * c.world)
	for r := range all {
		in := src.take(c, r, lengths[r])
		all[r].in, all[r].want = in, want
		switch c.op {
		case fabric.AllGatherRows:
			all[r].call.RowBytes = row
			for i := 0; i*row < n; i++ {
				copy(want[(i*c.world+r)*row:], in[i*row:(i+1)*row])
			}
			continue
		case fabric.AllGatherV:
			all[r].call.Stride, all[r].call.Lengths = stride, lengths
		}
		copy(want[r*stride:], in)
		if c.inPlace {
			all[r].at = r * stride
		}
	}
}

// uneven varies the length of blocks.
func uneven(n, i int) int { return [...]int{n, 0, n / 2, min(1, n)}[i%4] }

// rowOf is some row length that n is a multiple of.
func rowOf(n, index int) int {
	for i := range 6 {
		if row := [...]int{3, 17, 256, 1, 5, n}[(index+i)%6]; row > 0 && n%row == 0 {
			return row
		}
	}
	return 1
}

func (c valueCase) transposes(all []share, src *source, n int) {
	length := func(from, to int) int {
		if c.op == fabric.AllToAll {
			return n
		}
		return uneven(n, from+2*to+c.index)
	}
	for r := range all {
		total := 0
		out, in := make([]int, c.world), make([]int, c.world)
		for p := range all {
			out[p], in[p] = length(p, r), length(r, p)
			total += in[p]
		}
		all[r].in, all[r].want = src.take(c, r, total), []byte{}
		if c.op == fabric.AllToAllV {
			all[r].call.Lengths, all[r].call.InLengths = out, in
		}
	}
	for from := range all {
		in := all[from].in
		for to := range all {
			k := length(from, to)
			all[to].want = append(all[to].want, in[:k]...)
			in = in[k:]
		}
	}
}

func (c valueCase) pairs(all []share, src *source, n int) {
	for r := range all {
		s := &all[r]
		place := (r + c.index) % c.world // who is whose partner varies
		partner := place ^ 1
		if c.op == fabric.SendRecv {
			k := 1 + c.index%(c.world-1)
			s.call.Peer, s.call.From = (r+k)%c.world, (r-k+c.world)%c.world
			s.in, s.want = src.take(c, r, n), src.take(c, s.call.From, n)
			continue
		}
		if partner >= c.world {
			s.idle = true
			continue
		}
		peer := ((partner-c.index)%c.world + c.world) % c.world
		s.call.Peer, s.call.From = peer, peer
		sends := place%2 == level(c.op == fabric.Recv)
		switch {
		case c.op == fabric.Exchange:
			s.in, s.want = src.take(c, r, n), src.take(c, peer, n)
		case sends:
			s.call.Op, s.in = fabric.Send, src.take(c, r, n)
		default:
			s.call.Op, s.want = fabric.Recv, src.take(c, peer, n)
		}
	}
}
