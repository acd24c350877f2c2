// Package soft reaches the software HIP device (csrc/softhip) from Go: the table that hipgo opens, and the controls that
// hipgo/hiptest offers. Without cgo, or elsewhere than on Linux, every function fails with driver.ErrBuild.
package soft

// Op is one operation that a queue has finished: struct softhip_op.
type Op struct {
	Number, Stream        uint64
	Queued, Start, End    uint64 // nanoseconds of CLOCK_MONOTONIC
	Address, Bytes, Value uint64
	Device, Queue, Code   int
	Ring                  bool
	Name                  string
}
