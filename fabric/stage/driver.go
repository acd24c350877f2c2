package stage

// Driver is what this package needs of a device; hipgo.Seam satisfies it. Addresses and handles are raw. Every method
// leaves the calling thread's current device as it was, and is safe from any goroutine. Copy, Record and Query, whose
// streams are this package's own, work while another thread captures in whatever mode.
//
// An error with a method Invalid() bool that is true says that the arguments were wrong and nothing was queued: the call
// is refused and the group goes on. Any other ends the group.
type Driver interface {
	// String names the device, its PCI id, the HIP version and the library: for every refusal.
	String() string
	// Integrated says that CPU and device share their memory: the CPU may read registered memory in place.
	Integrated() bool
	// AllocHost gives zeroed, pinned, mapped, coherent memory and its address for the device. Not while a stream captures.
	AllocHost(bytes int) (mem []byte, device uintptr, err error)
	FreeHost(mem []byte) error
	// Inspect fails, saying what p is, unless [p, p+bytes) lies in one live allocation that this device can reach. host
	// tells pinned host memory from device memory.
	Inspect(p uintptr, bytes int) (host bool, err error)
	// OpenStream gives a non-blocking stream and an event for it; private where the stream has a hardware queue of its own,
	// so that streams parked on a wait cannot hold it up.
	// eventOnly: an event alone, for Record on streams of the engine's; CloseStream takes it back with stream 0.
	OpenStream(eventOnly bool) (stream, event uintptr, private bool, err error)
	CloseStream(stream, event uintptr) error
	// Copy queues a copy in any direction.
	Copy(stream, dst, src uintptr, bytes int) error
	Record(stream, event uintptr) error
	// Query says whether the device has reached the event's last Record.
	Query(event uintptr) (bool, error)
	// WriteWait queues a write of r at ready, then a wait until the word at done, as an unsigned number, is at least d. It asks
	// the stream first: nothing is queued where it captures.
	WriteWait(stream, ready uintptr, r uint64, done uintptr, d uint64) (captures bool, err error)
	Capturing(stream uintptr) (bool, error)
}

// Launcher is what the kernels gate needs beyond Driver; hipgo.Seam satisfies it.
type Launcher interface {
	// Clock is the rate of the clock that a kernel on an AMD device reads, in kHz; 0 where it is unknown.
	Clock() int
	// Load loads a code object, or a bundle of them, and finds its functions. The image is copied. An image that will not do
	// is errors.ErrUnsupported.
	Load(image []byte, names ...string) (module uintptr, functions []uintptr, err error)
	Unload(module uintptr) error
	// Launch queues a kernel that takes one struct by value. args is copied.
	Launch(stream, function uintptr, blocks, threads int, args []byte) error
	AllocDevice(bytes int) (uintptr, error) // zeroed. Not while a stream captures
	FreeDevice(p uintptr) error
}
