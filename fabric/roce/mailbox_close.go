package roce

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// closeWithin is how long Close waits for streams to pass the mailbox's calls.
const closeWithin = 5 * time.Second

// Close ends this rank's use of the group, and the other path's. Kernels that wait are let go. It waits, a second at most, until the peers have
// what was posted for them, and frees once no HCA touches memory and every stream has passed the group's calls and the graphs launched on streams
// that they were captured from, for which it waits five seconds at most; its error then says what is not freed, which happens later,
// should the device get so far. Graphs with calls must not be launched any more. It is idempotent.
func (m *Mailbox) Close() error {
	m.closed.Do(func() { m.closeErr = m.close() })
	return m.closeErr
}

func (m *Mailbox) close() error {
	m.closing.Store(true)
	m.fail(&fabric.Cause{Kind: fabric.ErrClosed, Peer: -1, From: m.rank})
	m.proxy.awaitQuiet() // the peers have what they need before the other path goes
	err := m.rest.Close()
	freed := make(chan error, 1)
	go func() {
		m.emptied()
		freed <- m.freeAll()
	}()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case other := <-freed:
		return errors.Join(err, other)
	case <-late.C:
	}
	go func() {
		if err := <-freed; err != nil {
			m.c.Logger.Warn("roce: a closed mailbox's memory is not freed", "group", m.c.Group, "rank", m.rank, "error", err)
		}
	}()
	return errors.Join(err, m.deviceCause(fmt.Sprintf("rank %d: %d bytes of the mailbox's pinned memory on %v are not freed yet: its streams have not passed the calls that were queued on them",
		m.rank, len(m.own.mem), m.gpu), nil))
}

// emptied returns once nobody uses the kernels' memory: no call in progress here, and no stream that has not passed its launches.
func (m *Mailbox) emptied() {
	timer := time.NewTimer(restLeast)
	defer timer.Stop()
	rest := func() {
		timer.Reset(restMost)
		<-timer.C
	}
	for m.inside.Load() > 0 {
		rest()
	}
	for _, stream := range m.used.Left() {
		for !m.hasPassed(stream, rest) {
			rest()
		}
	}
}

// hasPassed says whether a stream has passed all that is on it. One that the driver does not know is no more: to end it was to wait for it.
// One that is being captured can be asked afterwards.
func (m *Mailbox) hasPassed(stream uintptr, rest func()) bool {
	if captures, err := m.gpu.Capturing(stream); err != nil || captures {
		return wrong(err)
	}
	if err := m.gpu.Record(stream, m.event); err != nil {
		return wrong(err)
	}
	for {
		done, err := m.gpu.Query(m.event)
		if done || err != nil {
			return err == nil
		}
		rest()
	}
}

// freeAll gives back what open has got, once the proxy has ended.
func (m *Mailbox) freeAll() error {
	m.proxy.awaitQuiet()
	var errs []error
	for _, r := range m.regions {
		errs = append(errs, m.d.Close(r.Handle))
	}
	for _, h := range append(slices.Clone(m.wires.hcas), m.relayHCAs...) {
		errs = append(errs, h.close())
	}
	for _, buffer := range m.buffers {
		errs = append(errs, m.d.Close(buffer))
	}
	if m.wires.region != 0 {
		errs = append(errs, m.d.Close(m.wires.region))
	}
	if m.hung {
		return errors.Join(append(errs, fmt.Errorf("%d bytes of pinned memory on %v are not freed: a kernel may use them yet", len(m.own.mem), m.gpu))...)
	}
	errs = append(errs, m.closeProbe())
	if m.own.mem != nil {
		errs = append(errs, m.gpu.FreeHost(m.own.mem))
	}
	if m.memory != 0 {
		errs = append(errs, m.gpu.FreeDevice(m.memory))
	}
	if m.opened {
		errs = append(errs, m.gpu.CloseStream(0, m.event))
	}
	if m.module != 0 {
		errs = append(errs, m.gpu.Unload(m.module))
	}
	return errors.Join(errs...)
}
