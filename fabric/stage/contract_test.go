package stage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
)

// subject is a rank over a double, as the contract's suite wants it.
type subject struct{ *rank }

type buffer struct {
	at  fabric.DevPtr
	mem []byte
}

func (b *buffer) Len() int { return len(b.mem) }
func (b *buffer) Slice(from, to int) fabrictest.Buffer {
	return &buffer{b.at + fabric.DevPtr(from), b.mem[from:to:to]}
}

func (s subject) Queues() bool { return true }
func (s subject) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.Wait(ctx, s.s)
}

func (s subject) Alloc(n int) (fabrictest.Buffer, error) {
	at, mem := s.memory(make([]byte, n))
	return &buffer{at, mem}, nil
}

func (s subject) Upload(dst fabrictest.Buffer, src []byte) error {
	if n := copy(dst.(*buffer).mem, src); n != dst.Len() || n != len(src) {
		return fmt.Errorf("copied %d bytes of %d to %d", n, len(src), dst.Len())
	}
	return nil
}

func (s subject) Download(dst []byte, src fabrictest.Buffer) error {
	if n := copy(dst, src.(*buffer).mem); n != len(dst) || n != src.Len() {
		return fmt.Errorf("copied %d bytes of %d to %d", n, src.Len(), len(dst))
	}
	return nil
}

func place(b fabrictest.Buffer) (fabric.DevPtr, int) {
	if b == nil {
		return 0, 0
	}
	return b.(*buffer).at, b.Len()
}

func (s subject) Do(c fabrictest.Call) error {
	call := fabric.Call{Op: c.Op, DType: c.DType, Reduce: c.Reduce, Peer: c.Peer, From: c.From, Root: c.Root, Stride: c.Stride, RowBytes: c.RowBytes,
		Lengths: c.Lengths, InLengths: c.InLengths}
	call.Device.In, call.Device.InBytes = place(c.In)
	call.Device.Out, call.Device.OutBytes = place(c.Out)
	return s.Queue(s.s, call)
}

func opener(partBytes int) fabrictest.Opener {
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		partBytes := partBytes
		if o.Group == "ring" || o.Group == "one-way" || o.Group == "facing" {
			partBytes = max(partBytes, fabrictest.PartBytes) // megabytes in small parts would take minutes
		}
		ranks := openRanks(t, world, func(_ int, c *stage.Config, _ *double) {
			c.PartBytes, c.Group, c.Timeout = partBytes, o.Group, o.Timeout
		})
		subjects := make([]fabrictest.Subject, world)
		for r := range ranks {
			subjects[r] = subject{ranks[r]}
		}
		return subjects
	}
}

func TestContractWhole(t *testing.T)   { fabrictest.RunPairwise(t, opener(stage.DefaultPartBytes)) }
func TestContractInParts(t *testing.T) { fabrictest.RunPairwise(t, opener(64)) }
