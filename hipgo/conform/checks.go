package conform

// check is one question. run says in one line what it saw; its error fails the check, unless it is known or unsupported.
type check struct {
	name string
	run  func(*probe) (string, error)
}

// checks are in order from what all else rests on. Those that leave a device in a bad state where it is broken come last.
func checks() []check {
	return []check{
		{"self-test", selfTest},
		{"order", order},
		{"wait64-gte", waitGte(64)},
		{"wait64-gte-unsigned", waitUnsigned(64)},
		{"wait64-eq", waitEq(64)},
		{"wait64-and", waitAnd(64)},
		{"wait64-nor", waitNor(64)},
		{"wait64-mask", waitMask(64)},
		{"wait64-nor-mask", waitNorMask(64)},
		{"wait32-gte", waitGte(32)},
		{"wait32-gte-unsigned", waitUnsigned(32)},
		{"wait32-eq", waitEq(32)},
		{"wait32-and", waitAnd(32)},
		{"wait32-nor", waitNor(32)},
		{"wait32-mask", waitMask(32)},
		{"wait32-nor-mask", waitNorMask(32)},
		{"write-width", writeWidth},
		{"write-wait", writeWait},
		{"write-flags", writeFlags},
		{"release-host-store", releaseHostStore},
		{"release-stream-write", releaseStreamWrite},
		{"acquire-copy-64", acquireCopy(64)},
		{"acquire-copy-16384", acquireCopy(16384)},
		{"acquire-copy-16385", acquireCopy(16385)},
		{"coherent-host", coherentHost},
		{"noncoherent-host", noncoherentHost},
		{"landing-event", landingEvent},
		{"landing-late", landingLate},
		{"pointer-device", pointerDevice},
		{"pointer-host", pointerHost},
		{"pointer-foreign", pointerForeign},
		{"event-never-recorded", eventNeverRecorded},
		{"event-not-ready", eventNotReady},
		{"event-stream-wait", eventStreamWait},
		{"capture-status", captureStatus},
		{"capture-query", captureQuery},
		{"capture-write-value", captureWriteValue},
		{"capture-wait-value", captureWaitValue},
		{"capture-replay", captureReplay},
		{"capture-beside", captureBeside},
		{"copy-own-16384", copyOwn(16384)},
		{"copy-own-16385", copyOwn(16385)},
		{"copy-own-1048576", copyOwn(1 << 20)},
		{"queue-cumask", queueMasked},
		{"queue-priority", queuePriority},
		{"queue-plain", queuePlain},
		{"create-while-parked", createWhileParked},
		{"copy-caller-16384", copyCaller(16384)},
		{"copy-caller-16385", copyCaller(16385)},
	}
}

// The public reports that Known results name.
const (
	reportStreamWrite = "https://github.com/ROCm/rocm-systems/issues/11605"
	reportCapture     = "https://github.com/ROCm/rocm-systems/pull/8911"
	reportQueues      = "https://github.com/ROCm/rocm-systems/pull/9249"
	reportPriority    = "https://github.com/ROCm/rocm-systems/pull/8485"
	reportCreate      = "https://github.com/ROCm/rocm-systems/pull/2652"
	reportCyclic      = "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEMOP.html"
	reportCopies      = "https://github.com/hipfabric/hipfabric/blob/main/docs/doctor.md#conform"
)
