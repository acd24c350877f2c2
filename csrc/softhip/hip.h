// The part of HIP's ABI that softhip answers to: values and layouts, under names of its own, so that the vendor's header
// is not needed and does not clash.
#ifndef SOFTHIP_HIP_H
#define SOFTHIP_HIP_H

#include <stddef.h>
#include <stdint.h>

enum hip_code {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorInvalidConfiguration = 9,
    hipErrorInvalidDevicePointer = 17,
    hipErrorInvalidMemcpyDirection = 21,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidImage = 200,
    hipErrorInvalidContext = 201,
    hipErrorNoBinaryForGpu = 209,
    hipErrorInvalidHandle = 400,
    hipErrorIllegalState = 401,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorContextIsDestroyed = 709,
    hipErrorHostMemoryAlreadyRegistered = 712,
    hipErrorHostMemoryNotRegistered = 713,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorStreamCaptureUnsupported = 900,
    hipErrorStreamCaptureInvalidated = 901,
    hipErrorStreamCaptureMerge = 902,
    hipErrorStreamCaptureUnmatched = 903,
    hipErrorStreamCaptureUnjoined = 904,
    hipErrorStreamCaptureIsolation = 905,
    hipErrorStreamCaptureImplicit = 906,
    hipErrorCapturedEvent = 907,
    hipErrorStreamCaptureWrongThread = 908,
    hipErrorUnknown = 999,
};

enum { STREAM_DEFAULT = 0, STREAM_NON_BLOCKING = 1 };
enum { EVENT_BLOCKING = 1, EVENT_NO_TIMING = 2, EVENT_INTERPROCESS = 4 };
#define EVENT_NO_FENCE 0x20000000u
#define EVENT_TO_DEVICE 0x40000000u
#define EVENT_TO_SYSTEM 0x80000000u
#define HOST_PORTABLE 1u
#define HOST_MAPPED 2u
#define HOST_WRITE_COMBINED 4u
#define HOST_UNCACHED 0x10000000u
#define HOST_NUMA_USER 0x20000000u
#define HOST_COHERENT 0x40000000u
#define HOST_NON_COHERENT 0x80000000u
enum { WAIT_GTE = 0, WAIT_EQ = 1, WAIT_AND = 2, WAIT_NOR = 3 };
enum { WRITE_PLAIN = 0, WRITE_INCREMENT = 0x1000, WRITE_DECREMENT = 0x1001 };
enum { COPY_HOST_TO_HOST, COPY_HOST_TO_DEVICE, COPY_DEVICE_TO_HOST, COPY_DEVICE_TO_DEVICE, COPY_DEFAULT };
enum { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };
enum { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };
enum { EXT_DEFAULT = 0, EXT_FINE = 1, EXT_SIGNAL = 2, EXT_UNCACHED = 3, EXT_CONTIGUOUS = 4 };

typedef struct hipUUID {
    char bytes[16];
} hipUUID;

typedef struct hipPointerAttribute {
    int32_t type;
    int32_t device;
    void *devicePointer;
    void *hostPointer;
    int32_t isManaged;
    uint32_t allocationFlags;
} hipPointerAttribute;
_Static_assert(sizeof(hipPointerAttribute) == 32 && offsetof(hipPointerAttribute, allocationFlags) == 28, "HIP's layout");

// hipStreamBatchMemOpParams; wait and write differ in nothing that is read here.
typedef union hipBatchOp {
    struct {
        int32_t operation;
        void *address;
        uint64_t value;
        uint32_t flags;
        void *alias;
    } value;
    uint64_t pad[6];
} hipBatchOp;
_Static_assert(sizeof(hipBatchOp) == 48, "HIP's layout");
enum { BATCH_WAIT32 = 1, BATCH_WRITE32 = 2, BATCH_FLUSH = 3, BATCH_WAIT64 = 4, BATCH_WRITE64 = 5, BATCH_BARRIER = 6 };

#define LAUNCH_END ((void *)0x03)
#define LAUNCH_BUFFER ((void *)0x01)
#define LAUNCH_BUFFER_SIZE ((void *)0x02)

#endif
