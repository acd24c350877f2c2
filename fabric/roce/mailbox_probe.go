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

// mailProbe is what the probe needs.
type mailProbe struct {
	room          []byte // this rank's bytes, then what each gave
	device        uintptr
	stream, event uintptr
}

func (m *Mailbox) openProbe() (err error) {
	p := &m.trial
	if p.room, p.device, err = m.gpu.AllocHost((1 + m.world) * probeBytes); err != nil {
		return fmt.Errorf("pinned memory for the mailbox's probe on %v: %w", m.gpu, err)
	}
	if p.stream, p.event, _, err = m.gpu.OpenStream(false); err != nil {
		return fmt.Errorf("a stream for the mailbox's probe on %v: %w", m.gpu, err)
	}
	return nil
}

// launchProbe makes the group's first call, a gather.
func (m *Mailbox) launchProbe() error {
	p := &m.trial
	copy(p.room, probed(m.rank))
	m.arguments(&fabric.Call{Op: fabric.AllGather, Device: fabric.OnDevice{In: fabric.DevPtr(p.device), InBytes: probeBytes,
		Out: fabric.DevPtr(p.device + probeBytes)}}, 0)
	m.queued.Add(1)
	err := m.launch(p.stream, gatherKernel, probeBytes)
	if err == nil {
		err = m.gpu.Record(p.stream, p.event)
	}
	if err != nil {
		return fmt.Errorf("launching the mailbox's probe on %v: %w", m.gpu, err)
	}
	m.proxy.called()
	return nil
}

// probe waits until the call has ended, and compares what came.
func (m *Mailbox) probe(ctx context.Context) error {
	if err := m.probeEnds(ctx); err != nil {
		return err
	}
	if c := m.failed.Load(); c != nil {
		return c
	}
	for r := range m.world {
		if got := m.trial.room[(1+r)*probeBytes:][:probeBytes]; !bytes.Equal(got, probed(r)) {
			// Told by the vote: the queue pairs stay up until the others have looked too.
			return m.deviceCause(fmt.Sprintf("rank %d: the mailbox's probe has brought other bytes from rank %d than it sent: is memory of %v coherent?", m.rank, r, m.gpu), nil)
		}
	}
	return m.closeProbe()
}

// closeProbe gives back what openProbe got. To close the stream waits until it is dry.
func (m *Mailbox) closeProbe() error {
	p, errs := m.trial, []error(nil)
	m.trial = mailProbe{}
	if p.stream != 0 {
		errs = append(errs, m.gpu.CloseStream(p.stream, p.event))
	}
	if p.room != nil {
		errs = append(errs, m.gpu.FreeHost(p.room))
	}
	return errors.Join(errs...)
}

// probeEnds waits until the kernel has ended, well or not.
func (m *Mailbox) probeEnds(ctx context.Context) error {
	look := time.NewTicker(restLeast)
	defer look.Stop()
	var late <-chan time.Time
	over := ctx.Done()
	for {
		if done, err := m.gpu.Query(m.trial.event); err != nil {
			m.hung = true
			return fmt.Errorf("the mailbox's probe on %v: %w", m.gpu, err)
		} else if done {
			m.look()
			return nil
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
			m.hung = true
			return fmt.Errorf("the mailbox's probe has not left %v in %v, after %w", m.gpu, dryWithin, m.failed.Load())
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
