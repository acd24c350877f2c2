package stage

import (
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
)

// Where things lie in the block of host memory that a stream, or a kernel on it, shares with the proxy: struct hf_host of
// csrc/mailbox/mailbox.h. Both gates have one.
const (
	ringSlots     = 256
	readyAt       = 0
	descriptorAt  = 2048
	doneAt        = 4096
	abortAt       = 6144
	failedAt      = 6208
	hostWordBytes = 6336
)

// A failure in one word, of done and of failed: this bit, the reason, the sequence.
const (
	failedBit      = 1 << 62
	reasonShift    = 56
	reasonCall     = 1
	reasonReleased = 4
)

// words is that block. Values of ready and done are sequences, and only grow: a stream that is late to its wait finds a
// larger one there, which lets it through as well.
type words struct {
	mem    []byte
	device uintptr
	w      []uint64
}

func newWords(d Driver) (words, error) {
	mem, device, err := d.AllocHost(hostWordBytes)
	if err != nil {
		return words{}, err
	}
	w, err := fabric.Words(mem[:hostWordBytes])
	return words{mem, device, w}, err
}

func slot(seq uint64) uint64 { return seq % ringSlots }

func (w *words) ready(seq uint64) *uint64      { return &w.w[readyAt/8+slot(seq)] }
func (w *words) descriptor(seq uint64) *uint64 { return &w.w[descriptorAt/8+slot(seq)] }
func (w *words) done(seq uint64) *uint64       { return &w.w[doneAt/8+slot(seq)] }
func (w *words) failed() *uint64               { return &w.w[failedAt/8] }

func (w *words) readyPtr(seq uint64) uintptr { return w.device + readyAt + uintptr(slot(seq))*8 }
func (w *words) donePtr(seq uint64) uintptr  { return w.device + doneAt + uintptr(slot(seq))*8 }

func (w *words) isReady(seq uint64) bool { return atomic.LoadUint64(w.ready(seq)) >= seq }

// finish stores the done word of seq, unless the slots have been released by a failure meanwhile.
func (w *words) finish(seq uint64) {
	before := uint64(0)
	if seq > ringSlots {
		before = seq - ringSlots
	}
	atomic.CompareAndSwapUint64(w.done(seq), before, seq)
}

// releaseAll lets every stream through, with a failure that is more than any sequence.
func (w *words) releaseAll(reason uint64) {
	for i := range uint64(ringSlots) {
		atomic.StoreUint64(w.done(i), failedBit|reason<<reasonShift)
	}
	atomic.StoreUint64(&w.w[abortAt/8], 1)
}

// struct hf_args, and the sizes of its companions.
const (
	argDevice       = 0
	argHost         = 8
	argSlab         = 16
	argWindow       = 24
	argMemory       = 32
	argBytesOf      = 40
	argStride       = 48
	argPitch        = 56
	argList         = 64
	argTimeout      = 72
	argDescriptor   = 80
	argLengths      = 88
	argLengthsAt    = 96
	argPieces       = 104
	argWorld        = 108
	argClock        = 112
	argBack         = 116
	argBytes        = 120
	deviceWordBytes = 256
	pieceBytes      = 24
)
