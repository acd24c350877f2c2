// Package hipgo is HIP for Go: devices, memory, streams, events, stream value operations, modules and graphs of whatever HIP
// runtime is there at run time. It binds thinly: a call does what HIP's does, and its doc names the C prototype.
//
// Open loads the runtime (libamdhip64.so.7, .6 or .5; no ROCm is needed to build). Handles are raw and go both ways: an
// engine with a binding of its own wraps its streams, events and buffers, and owns them still. Every call works from any
// goroutine and leaves its thread's current device, and what hipGetLastError finds there, as they were. What is made here
// lasts until its Close; no finaliser frees anything, since a device may be using it. Use after Close is an error that is
// os.ErrClosed.
//
// Calls that only queue return in microseconds unless the runtime's own queue is full. Close of a stream, of a module and of
// memory waits, inside HIP, for what the device still has to do with it: release parked streams by a host store first. While
// a stream captures, an allocation or a query of this package does not invalidate the capture.
//
// A build without cgo, or not for Linux, has it all but can open nothing: the error is errors.ErrUnsupported.
package hipgo
