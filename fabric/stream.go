package fabric

import "context"

// DevPtr is an address in device memory, or of host memory as the device sees it, from any HIP binding.
type DevPtr uintptr

// Stream is a raw hipStream_t, from any HIP binding.
type Stream uintptr

// OnDevice are the buffers of a call on device memory, where In, Out and Lengths are those of one on host memory.
type OnDevice struct {
	In, Out  DevPtr
	InBytes  int
	OutBytes int
	// Lengths is an int32[world] of bytes in device memory, the same on every rank: AllGatherVDevice. 0 elsewhere.
	Lengths DevPtr
}

// StreamTransport is what a device path implements: it queues a checked call on a stream. fabric/stage is one. Its errors
// are a *Cause, or of call scope: ErrInvalid, ErrUnsupported, ErrCapture, each before anything was queued.
type StreamTransport interface {
	Kind() string // "staged"
	Rank() int
	World() int
	// Queue queues the call on s and returns: in order with what the engine has queued there. The call is copied, its
	// Lengths and InLengths too; its device buffers belong to it until the stream has passed it. It waits while as many
	// calls are under way as the path can hold, bounded by the group's Timeout without progress, and ends by Abort and
	// Close. One goroutine at a time.
	Queue(s Stream, c *Call) error
	// Capture prepares for an engine's own capture of s, before that begins. As Queue.
	Capture(s Stream) (PlanTransport, error)
	// Sync returns once s has passed everything queued so far: nil; or the group's *Cause; or ctx's error, which leaves
	// the group alone. After Abort it returns once no queued call of s touches its buffers, or can be known to. Safe beside
	// everything else.
	Sync(ctx context.Context, s Stream) error
	Alloc(n int) (DeviceMemory, error) // memory this path moves with the fewest copies
	// Register lets calls use the engine's pinned memory in place where they can: device is host as the device sees it.
	Register(host []byte, device DevPtr) (DeviceMemory, error)
	Ordered() bool
	Waiting() uint64    // as Transport
	Progress() Progress // as Collective
	Records() []Record  // as Collective: a call appears once its stream has reached it
	// Abort ends every call under way and every later one with cause, and lets every parked stream go on; safe from any
	// goroutine, idempotent.
	Abort(cause error)
	Close() error // after Abort; waits for a Queue or Sync in progress to leave; safe from any goroutine, idempotent
	Stats() Stats
}

// PlanTransport is a path's part in a captured graph. Its methods are called as Queue is; a Close of the path frees it.
type PlanTransport interface {
	End() error     // the capture has ended: no further call joins
	Release() error // no replay comes any more: a later one poisons the group by name
}

// DeviceMemory is what a stream path's Alloc and Register give: worth until Close.
type DeviceMemory interface {
	Device() DevPtr
	Len() int
	Bytes() []byte // the same memory for the CPU; nil where it cannot touch it
	// Close frees what Alloc gave, and only forgets what Register gave. After a failure it waits for the copies that may
	// still land there, five seconds at most; its error then says that the memory is not freed.
	Close() error
}
