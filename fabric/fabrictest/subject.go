package fabrictest

import (
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// PartBytes is the size at which a path under test starts to cut calls into parts: open it with EagerBytes, or what it
// calls it, of this.
const PartBytes = 4096

// SubjectOptions are what Run asks of a world of subjects.
type SubjectOptions struct {
	Group   string        // name of the group
	Timeout time.Duration // of a call without progress
}

// Subject is one rank of a path under test. Host makes one of a fabric.Collective; a stream path makes its own. Methods
// are called from one goroutine, but for Do in the test of two at once, Check, Abort and Close.
type Subject interface {
	Rank() int
	World() int
	Ordered() bool                         // bits as the contract promises
	Queues() bool                          // Do only queues, and Sync waits
	Alloc(n int) (Buffer, error)           // memory of the path's kind; freed by Close
	Upload(dst Buffer, src []byte) error   // of one length
	Download(dst []byte, src Buffer) error // of one length
	Do(c Call) error                       // makes or queues the call
	Sync() error                           // returns once all calls of Do have ended; nil when they were good
	Check() error                          // the group's cause, without waiting
	Abort(cause error)
	Close() error
}

// Buffer is memory of a path's own kind. A nil Buffer is no memory.
type Buffer interface {
	Len() int
	Slice(from, to int) Buffer // the same memory
}

// Call is fabric.Call with Buffers.
type Call struct {
	Op               fabric.Op
	DType            fabric.DType
	Reduce           fabric.ReduceOp
	Peer, From, Root int
	In, Out          Buffer // Broadcast: In at the root, Out elsewhere
	Stride, RowBytes int
	Lengths          []int
	InLengths        []int
}

// Host is the Subject of a path for host memory, which owns c from then on.
func Host(c *fabric.Collective) Subject { return &host{c: c} }

type host struct {
	c      *fabric.Collective
	memory []fabric.Memory
}

type hostBuffer []byte

func (b hostBuffer) Len() int                  { return len(b) }
func (b hostBuffer) Slice(from, to int) Buffer { return b[from:to:to] }

func (h *host) Rank() int         { return h.c.Rank() }
func (h *host) World() int        { return h.c.World() }
func (h *host) Ordered() bool     { return h.c.Ordered() }
func (h *host) Queues() bool      { return false }
func (h *host) Sync() error       { return nil }
func (h *host) Check() error      { return h.c.Check() }
func (h *host) Abort(cause error) { h.c.Abort(cause) }

func (h *host) Close() error {
	err := h.c.Close()
	for _, m := range h.memory {
		if e := m.Close(); err == nil {
			err = e
		}
	}
	h.memory = nil
	return err
}

func (h *host) Alloc(n int) (Buffer, error) {
	m, err := h.c.Alloc(n)
	if err != nil {
		return nil, err
	}
	h.memory = append(h.memory, m)
	return hostBuffer(m.Bytes()), nil
}

func (h *host) Upload(dst Buffer, src []byte) error {
	return copied(copy(bytesOf(dst), src), len(src), dst.Len())
}
func (h *host) Download(dst []byte, src Buffer) error {
	return copied(copy(dst, bytesOf(src)), len(dst), src.Len())
}

func copied(n, a, b int) error {
	if n != a || n != b {
		return fmt.Errorf("fabrictest: copy between %d and %d bytes", a, b)
	}
	return nil
}

func bytesOf(b Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.(hostBuffer)
}

// Do goes by the methods that an engine calls.
func (h *host) Do(c Call) error {
	in, out := bytesOf(c.In), bytesOf(c.Out)
	switch c.Op {
	case fabric.AllReduce:
		return h.c.AllReduce(out, in, c.DType, c.Reduce)
	case fabric.ReduceScatter:
		return h.c.ReduceScatter(out, in, c.DType, c.Reduce)
	case fabric.AllGather:
		return h.c.AllGather(out, in)
	case fabric.AllGatherV:
		return h.c.AllGatherV(out, in, c.Stride, c.Lengths)
	case fabric.AllGatherRows:
		return h.c.AllGatherRows(out, in, c.RowBytes)
	case fabric.Broadcast:
		if h.Rank() == c.Root {
			return h.c.Broadcast(in, c.Root)
		}
		return h.c.Broadcast(out, c.Root)
	case fabric.AllToAll:
		return h.c.AllToAll(out, in)
	case fabric.AllToAllV:
		return h.c.AllToAllV(out, in, c.Lengths, c.InLengths)
	case fabric.Exchange:
		return h.c.Exchange(out, in, c.Peer)
	case fabric.SendRecv:
		return h.c.SendRecv(in, c.Peer, out, c.From)
	case fabric.Send:
		return h.c.Send(in, c.Peer)
	case fabric.Recv:
		return h.c.Recv(out, c.From)
	default:
		return h.c.Barrier()
	}
}
