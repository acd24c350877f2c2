package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Device is one rank's device and a stream on it, as the Subject of a path for device memory uses them: by the device's own
// means, with nothing through the path. Functions are called from several goroutines.
type Device struct {
	Stream fabric.Stream // an engine's, on which every call is queued
	Alloc  func(bytes int) (fabric.DevPtr, error)
	Free   func(fabric.DevPtr) error
	// Upload and Download return once the bytes are there, whatever Stream waits for.
	Upload   func(dst fabric.DevPtr, src []byte) error
	Download func(dst []byte, src fabric.DevPtr) error
	// Synchronize returns once Stream has passed everything queued on it, or ctx has ended.
	Synchronize func(ctx context.Context) error
	// Hold lets nothing run that is queued on Stream from now on, until release. nil: what needs it is skipped.
	Hold func() (release func(), err error)
	// Graph captures what record queues on Stream, and instantiates it. nil: what needs it is skipped.
	Graph func(record func() error) (Graph, error)
	Close func() error // frees the stream and the device, after the path; may be nil
}

// Stream is the Subject of a path for device memory, which owns c and d from then on.
func Stream(c *fabric.StreamCollective, d Device) Subject { return &stream{c: c, d: d} }

type stream struct {
	c      *fabric.StreamCollective
	d      Device
	memory []fabric.DevPtr
	closed bool
}

type deviceBuffer struct {
	at fabric.DevPtr
	n  int
}

func (b deviceBuffer) Len() int { return b.n }
func (b deviceBuffer) Slice(from, to int) Buffer {
	return deviceBuffer{b.at + fabric.DevPtr(from), to - from}
}

func (s *stream) Rank() int         { return s.c.Rank() }
func (s *stream) World() int        { return s.c.World() }
func (s *stream) Ordered() bool     { return s.c.Ordered() }
func (s *stream) Queues() bool      { return true }
func (s *stream) Check() error      { return s.c.Check() }
func (s *stream) Abort(cause error) { s.c.Abort(cause) }

// syncLimit is far more than any stream needs for what the suite queues.
const syncLimit = 2 * time.Minute

func (s *stream) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), syncLimit)
	defer cancel()
	return s.c.Wait(ctx, s.d.Stream)
}

// passes says whether the stream itself, with nothing through the path, gets past all that was queued on it.
func (s *stream) passes() error {
	ctx, cancel := context.WithTimeout(context.Background(), syncLimit)
	defer cancel()
	if err := s.d.Synchronize(ctx); err != nil {
		return fmt.Errorf("the stream of rank %d stays parked: %w", s.Rank(), err)
	}
	return nil
}

// Close lets the stream pass before it frees what calls may still touch. It is idempotent.
func (s *stream) Close() error {
	err := s.c.Close()
	if s.closed {
		return err
	}
	s.closed = true
	err = errors.Join(err, s.passes())
	for _, p := range s.memory {
		err = errors.Join(err, s.d.Free(p))
	}
	if s.d.Close != nil {
		err = errors.Join(err, s.d.Close())
	}
	return err
}

func (s *stream) Alloc(n int) (Buffer, error) {
	p, err := s.d.Alloc(max(n, 1))
	if err != nil {
		return nil, err
	}
	s.memory = append(s.memory, p)
	return deviceBuffer{p, n}, nil
}

func (s *stream) Upload(dst Buffer, src []byte) error {
	if dst.Len() != len(src) {
		return copied(dst.Len(), len(src), dst.Len())
	}
	if len(src) == 0 {
		return nil
	}
	return s.d.Upload(place(dst).at, src)
}

func (s *stream) Download(dst []byte, src Buffer) error {
	if src.Len() != len(dst) {
		return copied(src.Len(), len(dst), src.Len())
	}
	if len(dst) == 0 {
		return nil
	}
	return s.d.Download(dst, place(src).at)
}

func place(b Buffer) deviceBuffer {
	if b == nil {
		return deviceBuffer{}
	}
	return b.(deviceBuffer)
}

// Do goes by the methods that an engine calls, and by Queue for lengths that a method's arguments cannot say.
func (s *stream) Do(c Call) error {
	in, out := place(c.In), place(c.Out)
	n, on, world := in.n, s.d.Stream, s.World()
	switch size := c.DType.Size(); {
	case c.Op == fabric.AllReduce && size > 0 && n == out.n && n%size == 0:
		return s.c.AllReduce(on, out.at, in.at, n/size, c.DType, c.Reduce)
	case c.Op == fabric.ReduceScatter && size > 0 && n == world*out.n && out.n%size == 0:
		return s.c.ReduceScatter(on, out.at, in.at, out.n/size, c.DType, c.Reduce)
	case c.Op == fabric.AllGather && out.n == world*n:
		return s.c.AllGather(on, out.at, in.at, n)
	case c.Op == fabric.AllGatherV && out.n == world*c.Stride && len(c.Lengths) == world && n == c.Lengths[s.Rank()]:
		return s.c.AllGatherV(on, out.at, in.at, c.Stride, c.Lengths)
	case c.Op == fabric.AllGatherRows && out.n == world*n:
		return s.c.AllGatherRows(on, out.at, in.at, n, c.RowBytes)
	case c.Op == fabric.Broadcast && c.Root == s.Rank() && out.n == 0:
		return s.c.Broadcast(on, in.at, n, c.Root)
	case c.Op == fabric.Broadcast && c.Root != s.Rank() && n == 0:
		return s.c.Broadcast(on, out.at, out.n, c.Root)
	case c.Op == fabric.AllToAll && out.n == n && n%world == 0:
		return s.c.AllToAll(on, out.at, in.at, n/world)
	case c.Op == fabric.AllToAllV && total(c.Lengths) == out.n && total(c.InLengths) == n:
		return s.c.AllToAllV(on, out.at, in.at, c.Lengths, c.InLengths)
	case c.Op == fabric.Exchange && out.n == n:
		return s.c.Exchange(on, out.at, in.at, n, c.Peer)
	case c.Op == fabric.SendRecv:
		return s.c.SendRecv(on, in.at, n, c.Peer, out.at, out.n, c.From)
	case c.Op == fabric.Send && out.n == 0:
		return s.c.Send(on, in.at, n, c.Peer)
	case c.Op == fabric.Recv && n == 0:
		return s.c.Recv(on, out.at, out.n, c.From)
	case c.Op == fabric.Barrier && n == 0 && out.n == 0:
		return s.c.Barrier(on)
	}
	return s.c.Queue(on, fabric.Call{Op: c.Op, DType: c.DType, Reduce: c.Reduce, Peer: c.Peer, From: c.From, Root: c.Root, Stride: c.Stride,
		RowBytes: c.RowBytes, Lengths: c.Lengths, InLengths: c.InLengths,
		Device: fabric.OnDevice{In: in.at, Out: out.at, InBytes: n, OutBytes: out.n}})
}

func total(lengths []int) int {
	n := 0
	for _, l := range lengths {
		n += l
	}
	return n
}
