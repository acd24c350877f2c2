//go:build !purego

package reduce

import (
	"golang.org/x/sys/cpu"

	"github.com/hipfabric/hipfabric/fabric"
)

const vectorBytes = 32

func capable(dt fabric.DType) bool { return cpu.X86.HasAVX2 }
