package roce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// probeBytes has every stripe carry some.
const probeBytes = MaxStripes*mailPack + 5

// probe makes the group's first call, a gather, by the kernels of all ranks, and compares what came.
func (m *Mailbox) probe(ctx context.Context) error {
	room, device, err := m.gpu.AllocHost((1 + m.world) * probeBytes)
	if err != nil {
		return fmt.Errorf("pinned memory for the mailbox's probe on %v: %w", m.gpu, err)
	}
	stream, event, _, err := m.gpu.OpenStream(false)
	if err != nil {
		return errors.Join(fmt.Errorf("a stream for the mailbox's probe on %v: %w", m.gpu, err), m.gpu.FreeHost(room))
	}
	copy(room, probed(m.rank))
	m.arguments(&fabric.Call{Op: fabric.AllGather, Device: fabric.OnDevice{In: fabric.DevPtr(device), InBytes: probeBytes,
		Out: fabric.DevPtr(device + probeBytes)}}, 0)
	m.queued.Add(1)
	err = m.launch(stream, gatherKernel, probeBytes)
	if err == nil {
		err = m.gpu.Record(stream, event)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("launching the mailbox's probe on %v: %w", m.gpu, err), m.gpu.CloseStream(stream, event), m.gpu.FreeHost(room))
	}
	m.proxy.called()
	if dry, err := m.probeEnds(ctx, event); !dry {
		return err // the kernel may run yet: neither stream nor memory can be given back
	}
	for r := range m.world {
		if got := room[(1+r)*probeBytes:][:probeBytes]; m.failed.Load() == nil && !bytes.Equal(got, probed(r)) {
			m.fail(m.deviceCause(fmt.Sprintf("rank %d: the mailbox's probe has brought other bytes from rank %d than it sent: is memory of %v coherent?", m.rank, r, m.gpu), nil))
		}
	}
	err = errors.Join(m.gpu.CloseStream(stream, event), m.gpu.FreeHost(room))
	if c := m.failed.Load(); c != nil {
		return errors.Join(c, err)
	}
	return err
}

// probeEnds waits until the kernel has ended, well or not.
func (m *Mailbox) probeEnds(ctx context.Context, event uintptr) (dry bool, err error) {
	look := time.NewTicker(restLeast)
	defer look.Stop()
	var late <-chan time.Time
	over := ctx.Done()
	for {
		if done, err := m.gpu.Query(event); err != nil {
			return false, fmt.Errorf("the mailbox's probe on %v: %w", m.gpu, err)
		} else if done {
			m.look()
			return true, nil
		}
		if late == nil && m.failed.Load() != nil {
			late = time.After(dryWithin)
		}
		select {
		case <-look.C:
		case <-over:
			over = nil
			m.fail(fabric.CauseOf(fmt.Errorf("the mailbox's probe: %w", context.Cause(ctx))))
		case <-late:
			return false, fmt.Errorf("the mailbox's probe has not left %v in %v, after %w", m.gpu, dryWithin, m.failed.Load())
		}
	}
}

// probed is what a rank gives.
func probed(rank int) []byte {
	b := make([]byte, probeBytes)
	for i := range b {
		b[i] = byte(1 + rank*91 + i*7 + i>>4)
	}
	return b
}
