package hipgo

import "fmt"

const (
	codeInvalidValue           = 1
	codeInsufficientDriver     = 35 // for the version of the PTX, on the other platform
	codeNoDevice               = 100
	codeInvalidDevice          = 101
	codeInvalidImage           = 200
	codeNoBinaryForGPU         = 209
	codeInvalidKernelFile      = 218 // or PTX, on the other platform
	codeInvalidSource          = 300
	codeSharedObjectInitFailed = 303
	codeInvalidHandle          = 400
	codeNotFound               = 500
	codeNotReady               = 600
	codeContextDestroyed       = 709 // what AMD's runtime says of a stream that is none
	codeNotSupported           = 801
)

// codeName is a table of ours: the runtime's own strings differ between versions.
func codeName(code int) string {
	if name, ok := codeNames[code]; ok {
		return "hipError" + name
	}
	return fmt.Sprintf("hipError %d", code)
}

var codeNames = map[int]string{
	1:    "InvalidValue",
	2:    "OutOfMemory",
	3:    "NotInitialized",
	4:    "Deinitialized",
	5:    "ProfilerDisabled",
	9:    "InvalidConfiguration",
	12:   "InvalidPitchValue",
	13:   "InvalidSymbol",
	17:   "InvalidDevicePointer",
	21:   "InvalidMemcpyDirection",
	35:   "InsufficientDriver",
	52:   "MissingConfiguration",
	53:   "PriorLaunchFailure",
	98:   "InvalidDeviceFunction",
	100:  "NoDevice",
	101:  "InvalidDevice",
	200:  "InvalidImage",
	201:  "InvalidContext",
	205:  "MapFailed",
	206:  "UnmapFailed",
	209:  "NoBinaryForGpu",
	214:  "ECCNotCorrectable",
	215:  "UnsupportedLimit",
	217:  "PeerAccessUnsupported",
	218:  "InvalidKernelFile",
	300:  "InvalidSource",
	301:  "FileNotFound",
	302:  "SharedObjectSymbolNotFound",
	303:  "SharedObjectInitFailed",
	304:  "OperatingSystem",
	400:  "InvalidHandle",
	401:  "IllegalState",
	500:  "NotFound",
	600:  "NotReady",
	700:  "IllegalAddress",
	701:  "LaunchOutOfResources",
	702:  "LaunchTimeOut",
	704:  "PeerAccessAlreadyEnabled",
	705:  "PeerAccessNotEnabled",
	708:  "SetOnActiveProcess",
	709:  "ContextIsDestroyed",
	710:  "Assert",
	712:  "HostMemoryAlreadyRegistered",
	713:  "HostMemoryNotRegistered",
	719:  "LaunchFailure",
	720:  "CooperativeLaunchTooLarge",
	801:  "NotSupported",
	900:  "StreamCaptureUnsupported",
	901:  "StreamCaptureInvalidated",
	902:  "StreamCaptureMerge",
	903:  "StreamCaptureUnmatched",
	904:  "StreamCaptureUnjoined",
	905:  "StreamCaptureIsolation",
	906:  "StreamCaptureImplicit",
	907:  "CapturedEvent",
	908:  "StreamCaptureWrongThread",
	910:  "GraphExecUpdateFailure",
	916:  "StreamDetached",
	999:  "Unknown",
	1052: "RuntimeMemory",
	1053: "RuntimeOther",
}
