package verbstest

import "syscall"

const (
	stateReset = iota
	stateInit
	stateRTR
	stateRTS
	stateSQD
	stateSQE
	stateErr
)

// bits of enum ibv_qp_attr_mask.
const (
	maskState      = 1 << 0
	maskAccess     = 1 << 3
	maskPKey       = 1 << 4
	maskPort       = 1 << 5
	maskAddress    = 1 << 7
	maskMTU        = 1 << 8
	maskTimeout    = 1 << 9
	maskRetries    = 1 << 10
	maskRNRRetries = 1 << 11
	maskRecvPSN    = 1 << 12
	maskReadsOut   = 1 << 13
	maskRNRTimer   = 1 << 15
	maskSendPSN    = 1 << 16
	maskReadsIn    = 1 << 17
	maskPeer       = 1 << 20
)

// change is what a transition of a reliable connection must have, and may.
type change struct{ must, may uint32 }

// transition gives it, as the kernel's table of queue pair states has it.
func transition(from, to uint32) (change, bool) {
	switch {
	case to == stateReset || to == stateErr:
		return change{}, true
	case from == stateReset && to == stateInit:
		return change{must: maskPKey | maskPort | maskAccess}, true
	case from == stateInit && to == stateInit:
		return change{may: maskPKey | maskPort | maskAccess}, true
	case from == stateInit && to == stateRTR:
		return change{must: maskAddress | maskMTU | maskPeer | maskRecvPSN | maskReadsIn | maskRNRTimer, may: maskAccess | maskPKey}, true
	case from == stateRTR && to == stateRTS:
		return change{must: maskTimeout | maskRetries | maskRNRRetries | maskSendPSN | maskReadsOut, may: maskAccess | maskRNRTimer}, true
	case from == stateRTS && to == stateRTS:
		return change{may: maskAccess | maskRNRTimer}, true
	}
	return change{}, false
}

func permitted(from, to, mask uint32) syscall.Errno {
	c, there := transition(from, to)
	mask &^= maskState
	if !there || mask&c.must != c.must || mask&^(c.must|c.may) != 0 {
		return syscall.EINVAL
	}
	return 0
}
