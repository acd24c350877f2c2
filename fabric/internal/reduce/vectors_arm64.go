//go:build !purego

package reduce

import "github.com/hipfabric/hipfabric/fabric"

const vectorBytes = 16

// capable: every arm64 processor that Go runs on has NEON.
func capable(fabric.DType) bool { return true }
