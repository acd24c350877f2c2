// Package hiptest is a HIP device in software for tests and demonstrations: the real hipgo.Runtime over csrc/softhip, or,
// for an engine with a binding of its own, a libamdhip64.so built from the same source (Library).
//
// It keeps HIP's rules where they bite: hardware queues shared by streams, SDMA rings shared by all, waits that park a
// queue, capture, coherence, device memory that the host cannot touch. It has no caches and no PCIe: passing on it proves
// protocol and error handling, not a GPU's memory model.
//
// A process has one World at a time. Nothing here needs testing.TB but Start and Library.
package hiptest
