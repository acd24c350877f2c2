//go:build !purego

package reduce

import (
	"sync"

	"golang.org/x/sys/cpu"

	"github.com/hipfabric/hipfabric/fabric"
)

const vectorBytes = 32

// capable says whether this processor, and the system on it, runs dt's kernels.
func capable(dt fabric.DType) bool {
	return cpu.X86.HasAVX2 && (dt != fabric.F16 || hasF16C())
}

// hasF16C asks the processor once: the instruction leaves a virtual machine, and golang.org/x/sys/cpu does not ask.
var hasF16C = sync.OnceValue(func() bool { return leaf1ECX()>>29&1 == 1 })

func leaf1ECX() uint32
