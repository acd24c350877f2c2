package roce

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// struct hf_call: docs/mailbox.md.
const (
	callMailbox  = 0
	callRegion   = 8
	callIn       = 16
	callOut      = 24
	callSize     = 32
	callSlot     = 40
	callTimeout  = 48
	callWorld    = 56
	callRank     = 60
	callTarget   = 64
	callStripes  = 68
	callDType    = 72
	callReduce   = 76
	callTag      = 80
	callClock    = 84
	callBytes    = 88
	mostThreads  = 512 // of a block; so many blocks of them fit on any device at once
	mostBlocks   = 16
	leastThreads = 64
	packsEach    = 4 // that a lane moves before there is another block
)

// Queue queues a checked call on s and returns: fabric.StreamTransport says the rest. Calls on several streams must be ordered by the
// engine, as by events. Errors: ErrInvalid for a buffer or a stream that is none of the device's, ErrCapture for a stream that captures
// without a plan, ErrClosed, the other path's, or the group's cause.
func (m *Mailbox) Queue(s fabric.Stream, c *fabric.Call) error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.leave()
	kind := m.kindOf(c)
	if kind < 0 {
		if err := m.rest.Queue(s, c); err != nil {
			return m.along(err)
		}
		return nil
	}
	if err := m.inspect("in", c.Device.In, c.Device.InBytes); err != nil {
		return err
	}
	if err := m.inspect("out", c.Device.Out, c.Device.OutBytes); err != nil {
		return err
	}
	stream := uintptr(s)
	captures, err := m.capturing(stream)
	if err != nil {
		return err
	}
	if captures {
		return m.join(stream, c, kind)
	}
	fresh := m.used.Begin(stream)
	m.arguments(c, kind)
	err = m.launch(stream, kernelOf(c.Op), c.Device.InBytes)
	m.used.LaidOut()
	switch {
	case err == nil:
		m.queued.Add(1)
		m.proxy.called()
		return nil
	case wrong(err):
		if fresh {
			m.used.Passed(stream, m.used.Laid())
		}
		return fabric.Invalidf("stream %#x takes no %v of %v, whose stream it must be: %v", stream, c.Op, m.gpu, err)
	}
	return m.failQueue(fmt.Sprintf("rank %d: queueing %v on stream %#x of %v: %v", m.rank, c.Op, stream, m.gpu, err), err)
}

// kindOf numbers a call that goes by the mailbox; -1 is one that does not. Nothing but what all ranks have alike decides.
func (m *Mailbox) kindOf(c *fabric.Call) int {
	if m.world == 1 || c.Device.InBytes > m.mc.SlotBytes {
		return -1
	}
	k := mailCall{c.Op, c.DType, c.Reduce}
	return k.kind()
}

func kernelOf(op fabric.Op) int {
	switch op {
	case fabric.AllGather:
		return gatherKernel
	case fabric.Exchange:
		return exchangeKernel
	default:
		return allReduceKernel
	}
}

// inspect refuses memory that the device cannot reach.
func (m *Mailbox) inspect(what string, p fabric.DevPtr, n int) error {
	if n == 0 {
		return nil
	}
	_, err := m.gpu.Inspect(uintptr(p), n)
	switch {
	case err == nil:
		return nil
	case wrong(err):
		return fabric.Invalidf("%s, %d bytes at %#x, is no memory of %v: %v", what, n, uintptr(p), m.gpu, err)
	}
	return m.failQueue(fmt.Sprintf("rank %d: asking what is at %#x on %v: %v", m.rank, uintptr(p), m.gpu, err), err)
}

// capturing asks a stream whether it captures.
func (m *Mailbox) capturing(stream uintptr) (bool, error) {
	yes, err := m.gpu.Capturing(stream)
	switch {
	case err == nil:
		return yes, nil
	case wrong(err):
		return false, fabric.Invalidf("stream %#x is none of %v: %v", stream, m.gpu, err)
	}
	return false, m.failQueue(fmt.Sprintf("rank %d: asking stream %#x on %v whether it captures: %v", m.rank, stream, m.gpu, err), err)
}

// arguments fills a struct hf_call.
func (m *Mailbox) arguments(c *fabric.Call, kind int) {
	a := m.args
	wide := func(at int, v uint64) { binary.NativeEndian.PutUint64(a[at:], v) }
	short := func(at int, v uint32) { binary.NativeEndian.PutUint32(a[at:], v) }
	wide(callMailbox, uint64(m.memory))
	wide(callRegion, uint64(m.own.device))
	wide(callIn, uint64(c.Device.In))
	wide(callOut, uint64(c.Device.Out))
	wide(callSize, uint64(c.Device.InBytes))
	wide(callSlot, uint64(m.mc.SlotBytes))
	wide(callTimeout, uint64(max(m.c.Timeout, 0)))
	short(callWorld, uint32(m.world))
	short(callRank, uint32(m.rank))
	short(callTarget, uint32(m.targetOf(c)))
	short(callStripes, uint32(m.stripes))
	short(callDType, uint32(c.DType))
	short(callReduce, uint32(c.Reduce))
	short(callTag, tagOf(kind, c.Device.InBytes))
	short(callClock, m.clock)
}

// targetOf is the number of what a call goes to: the peer's, or the rank's own, which is the group's.
func (m *Mailbox) targetOf(c *fabric.Call) int {
	if c.Op == fabric.Exchange {
		return c.Peer
	}
	return m.rank
}

// launch queues the kernel with the arguments.
func (m *Mailbox) launch(stream uintptr, kernel, bytes int) error {
	packs, flags := (bytes+mailPack-1)/mailPack, m.world*m.stripes
	lanes := max(packs, flags)
	threads := min(max(leastThreads, (lanes+leastThreads-1)/leastThreads*leastThreads), mostThreads)
	each := packsEach * threads
	blocks := min(max(1, (packs*m.world+each-1)/each), mostBlocks)
	return m.gpu.Launch(stream, m.kernels[kernel], blocks, threads, m.args)
}

// along is for what the other path said: its end is this one's.
func (m *Mailbox) along(err error) error {
	var cause *fabric.Cause
	if !errors.As(err, &cause) {
		return err
	}
	m.fail(cause)
	if errors.Is(cause.Kind, fabric.ErrDevice) {
		return err
	}
	return m.ended()
}
