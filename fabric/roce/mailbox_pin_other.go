//go:build !linux

package roce

import "github.com/hipfabric/hipfabric/fabric"

// pin has the calling thread run on these CPUs only.
func pin([]int) error { return fabric.Unsupportedf("threads are bound to CPUs on Linux only") }
