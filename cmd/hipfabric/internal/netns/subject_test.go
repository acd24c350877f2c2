//go:build linux

package netns

import (
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// Piece is a part of a worker's memory; Memory 0 is none.
type Piece struct{ Memory, From, To int }

// Len and Slice make it a fabrictest.Buffer.
func (p Piece) Len() int { return p.To - p.From }

// Slice is the same memory, less of it.
func (p Piece) Slice(from, to int) fabrictest.Buffer {
	return Piece{p.Memory, p.From + from, p.From + to}
}

// Deed is a call of the contract suite: fabrictest.Call, its buffers in the worker.
type Deed struct {
	Group   int
	Call    fabrictest.Call // without buffers
	In, Out Piece
}

// Copy moves bytes to or from a worker's memory.
type Copy struct {
	Group int
	Piece Piece
	Bytes []byte
}

// Allocated tells of an Alloc.
type Allocated struct {
	Piece Piece
	Fault Fault
}

// Alloc takes memory for calls, freed with the process.
func (w *Worker) Alloc(c Copy, r *Allocated) error {
	return w.with(c.Group, &r.Fault, func(m *member) error {
		memory, err := m.group.Host().Alloc(c.Piece.To)
		if err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		r.Piece = Piece{Memory: len(m.memory) + 1, To: c.Piece.To}
		m.memory[r.Piece.Memory] = memory
		return nil
	})
}

func (m *member) bytes(p Piece) []byte {
	if p.Memory == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory[p.Memory].Bytes()[p.From:p.To:p.To]
}

// Upload fills memory.
func (w *Worker) Upload(c Copy, r *Fault) error {
	return w.with(c.Group, r, func(m *member) error {
		copy(m.bytes(c.Piece), c.Bytes)
		return nil
	})
}

// Download reads memory.
func (w *Worker) Download(c Copy, r *[]byte) error {
	m, err := w.find(c.Group)
	if err == nil {
		*r = m.bytes(c.Piece)
	}
	return err
}

// Do makes a call of the suite as an engine does.
func (w *Worker) Do(d Deed, r *Fault) error {
	return w.with(d.Group, r, func(m *member) error {
		return call(m.group.Host(), d.Call, m.bytes(d.In), m.bytes(d.Out))
	})
}

func call(c *fabric.Collective, d fabrictest.Call, in, out []byte) error {
	switch d.Op {
	case fabric.AllReduce:
		return c.AllReduce(out, in, d.DType, d.Reduce)
	case fabric.ReduceScatter:
		return c.ReduceScatter(out, in, d.DType, d.Reduce)
	case fabric.AllGather:
		return c.AllGather(out, in)
	case fabric.AllGatherV:
		return c.AllGatherV(out, in, d.Stride, d.Lengths)
	case fabric.AllGatherRows:
		return c.AllGatherRows(out, in, d.RowBytes)
	case fabric.Broadcast:
		if c.Rank() == d.Root {
			return c.Broadcast(in, d.Root)
		}
		return c.Broadcast(out, d.Root)
	case fabric.AllToAll:
		return c.AllToAll(out, in)
	case fabric.AllToAllV:
		return c.AllToAllV(out, in, d.Lengths, d.InLengths)
	case fabric.Exchange:
		return c.Exchange(out, in, d.Peer)
	case fabric.SendRecv:
		return c.SendRecv(in, d.Peer, out, d.From)
	case fabric.Send:
		return c.Send(in, d.Peer)
	case fabric.Recv:
		return c.Recv(out, d.From)
	default:
		return c.Barrier()
	}
}

// subject is a worker's part in one group, as the contract suite drives it.
type subject struct {
	worker      *worker
	group       int
	rank, world int
}

func (s *subject) Rank() int     { return s.rank }
func (s *subject) World() int    { return s.world }
func (s *subject) Ordered() bool { return true }
func (s *subject) Queues() bool  { return false }
func (s *subject) Sync() error   { return nil }

func (s *subject) Alloc(n int) (fabrictest.Buffer, error) {
	var r Allocated
	if err := s.worker.ask("Alloc", Copy{Group: s.group, Piece: Piece{To: n}}, &r); err != nil {
		return nil, err
	}
	return r.Piece, r.Fault.err()
}

func (s *subject) Upload(dst fabrictest.Buffer, src []byte) error {
	p, err := piece(dst)
	if err == nil && p.Len() != len(src) {
		err = fmt.Errorf("upload of %d bytes to %d", len(src), p.Len())
	}
	if err != nil {
		return err
	}
	return s.worker.do("Upload", Copy{s.group, p, src})
}

func (s *subject) Download(dst []byte, src fabrictest.Buffer) error {
	p, err := piece(src)
	if err == nil && p.Len() != len(dst) {
		err = fmt.Errorf("download of %d bytes to %d", p.Len(), len(dst))
	}
	if err != nil {
		return err
	}
	var b []byte
	if err := s.worker.ask("Download", Copy{Group: s.group, Piece: p}, &b); err != nil {
		return err
	}
	copy(dst, b)
	return nil
}

func (s *subject) Do(c fabrictest.Call) error {
	in, err := piece(c.In)
	if err != nil {
		return err
	}
	out, err := piece(c.Out)
	if err != nil {
		return err
	}
	c.In, c.Out = nil, nil
	return reported(s.worker.do("Do", Deed{s.group, c, in, out}))
}

// reported gives a cause a reporter when rank 0, to whom one reports, is the one that has gone; the suite wants one always.
func reported(err error) error {
	var op *fabric.OpError
	var cause *fabric.Cause
	if errors.As(err, &op) && errors.As(op.Err, &cause) && errors.Is(cause.Kind, fabric.ErrPeerFailed) && cause.Peer == 0 && cause.From < 0 {
		op.From, cause.From = op.Rank, op.Rank
	}
	return err
}

func (s *subject) Check() error { return reported(s.worker.do("Check", Order{Group: s.group})) }
func (s *subject) Abort(cause error) {
	_ = s.worker.do("Abort", Order{Group: s.group, Text: cause.Error()})
}
func (s *subject) Close() error { return s.worker.do("Close", Order{Group: s.group}) }

// piece is what lies behind a Buffer, which may be one of fabrictest's own around ours.
func piece(b fabrictest.Buffer) (Piece, error) {
	switch p := b.(type) {
	case nil:
		return Piece{}, nil
	case Piece:
		return p, nil
	default:
		whole, ok := b.Slice(0, b.Len()).(Piece)
		if !ok {
			return Piece{}, fmt.Errorf("%T is no memory of a worker", b)
		}
		return whole, nil
	}
}
