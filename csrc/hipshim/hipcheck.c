//go:build cgo && linux

// Each prototype of hipshim.h against the vendor's header, where one is installed.
#if defined(__has_include)
#if __has_include(<hip/hip_runtime_api.h>)
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#ifndef __HIP_PLATFORM_HCC__  // the name of the same platform before HIP 6
#define __HIP_PLATFORM_HCC__ 1
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <hip/hip_runtime_api.h>
#pragma GCC diagnostic pop

#define HIPSHIM_VENDOR_TYPES
#include "table.h"

#define CHECK(name, args) \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), hipError_t(*) args), #name " differs from the vendor's header");
HIPSHIM_REQUIRED(CHECK)
HIPSHIM_OPTIONAL(CHECK)

_Static_assert(sizeof(hipError_t) == sizeof(int), "hipError_t is no int");
_Static_assert(sizeof(hipDeviceAttribute_t) == sizeof(int) && sizeof(hipMemcpyKind) == sizeof(int), "an enum is no int");
_Static_assert(sizeof(hipStreamCaptureMode) == sizeof(int) && sizeof(hipStreamCaptureStatus) == sizeof(int), "an enum is no int");
_Static_assert(sizeof(hipStream_t) == sizeof(void *) && sizeof(hipGraph_t) == sizeof(void *), "a handle is no pointer");
_Static_assert(sizeof(hipPointerAttribute_t) == 32, "hipPointerAttribute_t");
_Static_assert(offsetof(hipPointerAttribute_t, device) == 4, "hipPointerAttribute_t.device");
_Static_assert(offsetof(hipPointerAttribute_t, devicePointer) == 8, "hipPointerAttribute_t.devicePointer");
_Static_assert(offsetof(hipPointerAttribute_t, hostPointer) == 16, "hipPointerAttribute_t.hostPointer");
_Static_assert(offsetof(hipPointerAttribute_t, isManaged) == 24, "hipPointerAttribute_t.isManaged");
_Static_assert(hipDeviceAttributeCanUseStreamWaitValue == 10013, "hipDeviceAttributeCanUseStreamWaitValue");
_Static_assert(hipDeviceAttributeIntegrated == 16 && hipDeviceAttributeCanMapHostMemory == 3, "hipDeviceAttribute_t");
_Static_assert(hipDeviceAttributeMultiprocessorCount == 63, "hipDeviceAttributeMultiprocessorCount");
_Static_assert(hipHostMallocMapped == 2 && hipHostMallocCoherent == 0x40000000, "hipHostMalloc flags");
_Static_assert(hipErrorNoDevice == 100 && hipErrorInvalidDevice == 101 && hipErrorNotReady == 600, "hipError_t");
_Static_assert(hipStreamCaptureModeRelaxed == 2, "hipStreamCaptureMode");
_Static_assert(hipStreamWaitValueGte == 0, "wait flags");
#endif
#endif

typedef int hipshim_a_file_is_not_empty;
