package hipgo

import "github.com/hipfabric/hipfabric/hipgo/internal/driver"

// CopyKind is a copy's direction.
type CopyKind int

// The directions of a copy.
const (
	CopyHostToHost     CopyKind = 0
	CopyHostToDevice   CopyKind = 1
	CopyDeviceToHost   CopyKind = 2
	CopyDeviceToDevice CopyKind = 3
	CopyDefault        CopyKind = 4 // by what the addresses are
)

// Condition is what a wait compares the masked word with.
type Condition uint32

// The conditions of a wait.
const (
	ConditionGte Condition = 0 // (word & mask) >= value, unsigned
	ConditionEq  Condition = 1 // (word & mask) == value
	ConditionAnd Condition = 2 // (word & mask & value) != 0
	ConditionNor Condition = 3 // ^(word | value) & mask != 0
)

// Copy queues a copy of n bytes. Both ranges belong to it until the stream has passed it; host memory must be pinned, or HIP
// may wait for the copy here.
//
// Implements: hipError_t hipMemcpyAsync(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream)
func (s Stream) Copy(dst, src uintptr, n int, kind CopyKind) error {
	if err := s.usable(); err != nil {
		return err
	}
	if n < 0 {
		return invalid("a copy of %d bytes", n)
	}
	return s.d.rt.check("hipMemcpyAsync", s.d.rt.t.Copy(s.d.ordinal, s.raw, dst, src, n, int(kind)))
}

// Memset queues n bytes of value.
//
// Implements: hipError_t hipMemsetAsync(void *dst, int value, size_t sizeBytes, hipStream_t stream)
func (s Stream) Memset(dst uintptr, value byte, n int) error {
	if err := s.usable(); err != nil {
		return err
	}
	if n < 0 {
		return invalid("a memset of %d bytes", n)
	}
	return s.d.rt.check("hipMemsetAsync", s.d.rt.t.Memset(s.d.ordinal, s.raw, dst, value, n))
}

// WaitValue64 parks the stream until the word at addr meets c. Nothing ends it but the word. On AMD's runtimes it does not
// acquire: read what a peer wrote by a copy, or in a kernel with an acquire of its own.
//
// Implements: hipError_t hipStreamWaitValue64(hipStream_t stream, void *ptr, uint64_t value, unsigned int flags, uint64_t mask)
func (s Stream) WaitValue64(addr uintptr, v uint64, c Condition, mask uint64) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.d.rt.check("hipStreamWaitValue64", s.d.rt.t.Wait64(s.d.ordinal, s.raw, addr, v, uint32(c), mask))
}

// WaitValue32 is WaitValue64 of a 32-bit word.
//
// Implements: hipError_t hipStreamWaitValue32(hipStream_t stream, void *ptr, uint32_t value, unsigned int flags, uint32_t mask)
func (s Stream) WaitValue32(addr uintptr, v uint32, c Condition, mask uint32) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.d.rt.check("hipStreamWaitValue32", s.d.rt.t.Wait32(s.d.ordinal, s.raw, addr, v, uint32(c), mask))
}

// WriteValue64 queues a store of v at addr, after a release of all that the stream did before.
//
// Implements: hipError_t hipStreamWriteValue64(hipStream_t stream, void *ptr, uint64_t value, unsigned int flags)
func (s Stream) WriteValue64(addr uintptr, v uint64) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.d.rt.check("hipStreamWriteValue64", s.d.rt.t.Write64(s.d.ordinal, s.raw, addr, v))
}

// WriteValue32 is WriteValue64 of a 32-bit word.
//
// Implements: hipError_t hipStreamWriteValue32(hipStream_t stream, void *ptr, uint32_t value, unsigned int flags)
func (s Stream) WriteValue32(addr uintptr, v uint32) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.d.rt.check("hipStreamWriteValue32", s.d.rt.t.Write32(s.d.ordinal, s.raw, addr, v))
}

// WriteWait queues a write of r at ready, then a wait until the word at done is at least d: two calls of HIP for the price of
// one crossing. Where the wait was refused, the write is queued all the same, and the error's Call says so.
func (s Stream) WriteWait(ready uintptr, r uint64, done uintptr, d uint64) error {
	if err := s.usable(); err != nil {
		return err
	}
	_, err := s.d.writeWait(s.raw, ready, r, done, d, false)
	return err
}

// writeWait with ask refuses a stream that captures, for the price of the same crossing.
func (d *Device) writeWait(stream, ready uintptr, r uint64, done uintptr, v uint64, ask bool) (captures bool, err error) {
	queued, code := d.rt.t.WriteWait(d.ordinal, stream, ready, r, done, v, ask)
	switch {
	case code == 0:
		return queued == driver.Captures, nil
	case queued == driver.Unanswered:
		return false, d.rt.fail("hipStreamIsCapturing", code)
	case queued == 0:
		return false, d.rt.fail("hipStreamWriteValue64", code)
	}
	return false, &Error{Call: "hipStreamWaitValue64", Code: code, Library: d.rt.library, half: true}
}

// WaitEvent makes the stream wait for the event's last Record.
//
// Implements: hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
func (s Stream) WaitEvent(e Event) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := e.usable(); err != nil {
		return err
	}
	return s.d.rt.check("hipStreamWaitEvent", s.d.rt.t.StreamWaitEvent(s.d.ordinal, s.raw, e.raw))
}
