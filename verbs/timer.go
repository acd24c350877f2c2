package verbs

import "time"

// A device waits 4.096 us times 2 to the code for an acknowledgement; code 0 is for ever.
const (
	timeoutUnit = 4096 * time.Nanosecond
	maxTimeout  = 31
)

func timeoutOf(code uint32) time.Duration {
	if code == 0 {
		return 0
	}
	return timeoutUnit << min(code, maxTimeout)
}

// timeoutCode is the shortest that is not below d.
func timeoutCode(d time.Duration) uint32 {
	code := uint32(1)
	for code < maxTimeout && timeoutOf(code) < d {
		code++
	}
	return code
}

// rnrSteps are the waits that codes 1 to 31 ask for, in units of 10 us; code 0 is the longest, 655.36 ms.
var rnrSteps = [...]int{
	1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 12, 8: 16, 9: 24, 10: 32, 11: 48, 12: 64, 13: 96, 14: 128, 15: 192, 16: 256,
	17: 384, 18: 512, 19: 768, 20: 1024, 21: 1536, 22: 2048, 23: 3072, 24: 4096, 25: 6144, 26: 8192, 27: 12288, 28: 16384,
	29: 24576, 30: 32768, 31: 49152,
}

const longestRNR = 65536 * 10 * time.Microsecond

func rnrTimer(code uint32) time.Duration {
	if code == 0 || int(code) >= len(rnrSteps) {
		return longestRNR
	}
	return time.Duration(rnrSteps[code]) * 10 * time.Microsecond
}

// rnrCode is the shortest that is not below d.
func rnrCode(d time.Duration) uint32 {
	for code := uint32(1); int(code) < len(rnrSteps); code++ {
		if rnrTimer(code) >= d {
			return code
		}
	}
	return 0
}
