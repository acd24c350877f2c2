package fabrictest

import (
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/reduce"
)

// plan turns a call into what goes to each peer and what comes from each. Reductions and rows come into scratch, and
// reach out in finish, once this rank's own input has been sent.
func (t *Transport) plan(c *fabric.Call) {
	t.sends, t.recvs = t.sends[:0], t.recvs[:0]
	world, me := t.World(), t.rank
	switch c.Op {
	case fabric.AllReduce, fabric.ReduceScatter, fabric.AllGatherRows:
		t.gather(c)
	case fabric.AllGather, fabric.AllGatherV:
		for p := range world {
			n, at := len(c.In), p*len(c.In)
			if c.Op == fabric.AllGatherV {
				n, at = c.Lengths[p], p*c.Stride
			}
			t.swap(c, p, c.In, c.Out[at:at+n])
		}
	case fabric.Broadcast:
		for p := range world {
			switch {
			case me == c.Root:
				t.send(c, p, c.In)
			case p == c.Root:
				t.receive(c, p, c.Out)
			}
		}
	case fabric.AllToAll:
		n := len(c.In) / world
		for p := range world {
			t.swap(c, p, c.In[p*n:(p+1)*n], c.Out[p*n:(p+1)*n])
		}
	case fabric.AllToAllV:
		out, in := c.Out, c.In
		for p := range world {
			t.swap(c, p, in[:c.InLengths[p]], out[:c.Lengths[p]])
			in, out = in[c.InLengths[p]:], out[c.Lengths[p]:]
		}
	case fabric.Barrier:
		for p := range world {
			t.swap(c, p, nil, nil)
		}
	default:
		if c.Sends() {
			t.send(c, c.Peer, c.In)
		}
		if c.Receives() {
			t.receive(c, c.From, c.Out)
		}
	}
}

// gather brings from every peer the bytes that finish needs.
func (t *Transport) gather(c *fabric.Call) {
	world, me := t.World(), t.rank
	n := len(c.Out)
	if c.Op == fabric.AllGatherRows {
		n = len(c.In)
	}
	block := func(r int) []byte {
		if c.Op == fabric.ReduceScatter {
			return c.In[r*n : (r+1)*n]
		}
		return c.In
	}
	t.scratch = t.scratch[:0]
	for p := range world {
		if p == me {
			t.scratch = append(t.scratch, block(me))
			continue
		}
		t.scratch = append(t.scratch, make([]byte, n))
		t.swap(c, p, block(p), t.scratch[p])
	}
}

func (t *Transport) finish(c *fabric.Call) {
	switch {
	case c.Op.Reduces():
		reduce.Combine(c.Out, t.scratch, c.DType, c.Reduce)
	case c.Op == fabric.AllGatherRows:
		for r, in := range t.scratch {
			for i := 0; i*c.RowBytes < len(in); i++ {
				copy(c.Out[(i*len(t.scratch)+r)*c.RowBytes:], in[i*c.RowBytes:(i+1)*c.RowBytes])
			}
		}
	}
}

func (t *Transport) swap(c *fabric.Call, peer int, in, out []byte) {
	if peer == t.rank {
		copy(out, in)
		return
	}
	t.send(c, peer, in)
	t.receive(c, peer, out)
}

func (t *Transport) send(c *fabric.Call, to int, b []byte) {
	if to != t.rank {
		t.sends = append(t.sends, outgoing{header: headerOf(c, t.rank, to, len(b)), to: to, data: b})
	}
}

func (t *Transport) receive(c *fabric.Call, from int, b []byte) {
	t.recvs = append(t.recvs, incoming{header: headerOf(c, t.rank, t.rank, len(b)), from: from, dst: b})
}
