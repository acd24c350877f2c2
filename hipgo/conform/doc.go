// Package conform asks a HIP runtime, on a device, whether it behaves as the staged path needs: order, waits on stream
// values, copies around them, hardware queues under parked streams, capture, coherence, events. It runs on the software
// device in CI and on real GPUs by their owners, whose receipt (Report) says what was seen.
//
// A check passes, fails, is known (what fails has a public report, which it names) or is unsupported (what it needs is
// not there, and it says what). No check hangs: every wait that it parks is released by a host store in the end, and a
// check that outlives its bound is reported as failed, with what was parked.
//
// What the checks cannot see: whether a kernel's loads acquire, and anything that shows only under load or on some runs.
package conform
