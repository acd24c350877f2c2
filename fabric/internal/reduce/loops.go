package reduce

import "github.com/hipfabric/hipfabric/fabric"

func loops(out []byte, ins [][]byte, at int, dt fabric.DType, op fabric.ReduceOp) int { return at }
