//go:build cgo && linux

// Names of HIP's errors. HIP 5.2's GetErrorString gives the name too, so no prose is kept.
#include "world.h"

#define ROW(name) {name, #name},
static const struct { int code; const char *name; } errors[] = {
    ROW(hipSuccess) ROW(hipErrorInvalidValue) ROW(hipErrorOutOfMemory) ROW(hipErrorInvalidConfiguration)
    ROW(hipErrorInvalidDevicePointer) ROW(hipErrorInvalidMemcpyDirection) ROW(hipErrorNoDevice) ROW(hipErrorInvalidDevice)
    ROW(hipErrorInvalidImage) ROW(hipErrorInvalidContext) ROW(hipErrorNoBinaryForGpu) ROW(hipErrorInvalidHandle)
    ROW(hipErrorIllegalState) ROW(hipErrorNotFound) ROW(hipErrorNotReady) ROW(hipErrorIllegalAddress)
    ROW(hipErrorContextIsDestroyed) ROW(hipErrorHostMemoryAlreadyRegistered) ROW(hipErrorHostMemoryNotRegistered)
    ROW(hipErrorLaunchFailure) ROW(hipErrorNotSupported) ROW(hipErrorStreamCaptureUnsupported)
    ROW(hipErrorStreamCaptureInvalidated) ROW(hipErrorStreamCaptureMerge) ROW(hipErrorStreamCaptureUnmatched)
    ROW(hipErrorStreamCaptureUnjoined) ROW(hipErrorStreamCaptureIsolation) ROW(hipErrorStreamCaptureImplicit)
    ROW(hipErrorCapturedEvent) ROW(hipErrorStreamCaptureWrongThread) ROW(hipErrorUnknown)
};

const char *error_name(int code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return errors[i].name;
    return "hipErrorUnknown";
}

SOFTHIP_API const char *NAMED(hipGetErrorName)(int code) { return error_name(code); }
SOFTHIP_API const char *NAMED(hipGetErrorString)(int code) { return error_name(code); }
