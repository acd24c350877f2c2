// A HIP runtime as a table of its entry points, under HIP's own names and prototypes. No HIP header is needed; hipcheck.c
// compares with the vendor's wherever one is installed.
#ifndef HIPSHIM_TABLE_H
#define HIPSHIM_TABLE_H

#include "hipshim.h"

#ifndef HIPSHIM_VENDOR_TYPES
typedef int hipError_t;
typedef int hipDevice_t;
typedef int hipDeviceAttribute_t;
typedef int hipMemcpyKind;
typedef int hipStreamCaptureMode;
typedef int hipStreamCaptureStatus;
typedef void *hipDeviceptr_t;
typedef void *hipStream_t;
typedef void *hipEvent_t;
typedef void *hipModule_t;
typedef void *hipFunction_t;
typedef void *hipGraph_t;
typedef void *hipGraphNode_t;
typedef void *hipGraphExec_t;

typedef struct hipPointerAttribute_t {
  int type;  // numbered anew at HIP 6.0
  int device;
  void *devicePointer;
  void *hostPointer;
  int isManaged;
  unsigned allocationFlags;
} hipPointerAttribute_t;
#endif

// X(name, arguments): without one of these there is no runtime.
#define HIPSHIM_REQUIRED(X)                                                                                       \
  X(hipInit, (unsigned flags))                                                                                    \
  X(hipRuntimeGetVersion, (int *version))                                                                         \
  X(hipGetDeviceCount, (int *count))                                                                              \
  X(hipGetDevice, (int *device))                                                                                  \
  X(hipSetDevice, (int device))                                                                                   \
  X(hipDeviceGetAttribute, (int *value, hipDeviceAttribute_t attribute, int device))                              \
  X(hipDeviceGetName, (char *name, int length, hipDevice_t device))                                               \
  X(hipDeviceGetPCIBusId, (char *id, int length, int device))                                                     \
  X(hipMalloc, (void **p, size_t bytes))                                                                          \
  X(hipFree, (void *p))                                                                                           \
  X(hipMemGetInfo, (size_t *available, size_t *total))                                                            \
  X(hipHostMalloc, (void **p, size_t bytes, unsigned flags))                                                      \
  X(hipHostFree, (void *p))                                                                                       \
  X(hipHostGetDevicePointer, (void **device, void *host, unsigned flags))                                         \
  X(hipPointerGetAttributes, (hipPointerAttribute_t *attributes, const void *p))                                  \
  X(hipMemcpyAsync, (void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream))           \
  X(hipMemsetAsync, (void *dst, int value, size_t bytes, hipStream_t stream))                                     \
  X(hipStreamCreateWithFlags, (hipStream_t *stream, unsigned flags))                                              \
  X(hipStreamCreateWithPriority, (hipStream_t *stream, unsigned flags, int priority))                             \
  X(hipDeviceGetStreamPriorityRange, (int *least, int *greatest))                                                 \
  X(hipStreamDestroy, (hipStream_t stream))                                                                       \
  X(hipStreamQuery, (hipStream_t stream))                                                                         \
  X(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned flags))                                   \
  X(hipStreamWaitValue64, (hipStream_t stream, void *p, uint64_t value, unsigned flags, uint64_t mask))           \
  X(hipStreamWaitValue32, (hipStream_t stream, void *p, uint32_t value, unsigned flags, uint32_t mask))           \
  X(hipStreamWriteValue64, (hipStream_t stream, void *p, uint64_t value, unsigned flags))                         \
  X(hipStreamWriteValue32, (hipStream_t stream, void *p, uint32_t value, unsigned flags))                         \
  X(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status))                                   \
  X(hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode))                                       \
  X(hipStreamEndCapture, (hipStream_t stream, hipGraph_t *graph))                                                 \
  X(hipGraphInstantiate, (hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *node, char *log, size_t bytes)) \
  X(hipGraphLaunch, (hipGraphExec_t exec, hipStream_t stream))                                                    \
  X(hipGraphExecDestroy, (hipGraphExec_t exec))                                                                   \
  X(hipGraphDestroy, (hipGraph_t graph))                                                                          \
  X(hipEventCreateWithFlags, (hipEvent_t *event, unsigned flags))                                                 \
  X(hipEventRecord, (hipEvent_t event, hipStream_t stream))                                                       \
  X(hipEventQuery, (hipEvent_t event))                                                                            \
  X(hipEventElapsedTime, (float *milliseconds, hipEvent_t start, hipEvent_t stop))                                \
  X(hipEventDestroy, (hipEvent_t event))                                                                          \
  X(hipModuleLoadData, (hipModule_t *module, const void *image))                                                  \
  X(hipModuleUnload, (hipModule_t module))                                                                        \
  X(hipModuleGetFunction, (hipFunction_t *function, hipModule_t module, const char *name))                        \
  X(hipModuleLaunchKernel, (hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,           \
                            unsigned by, unsigned bz, unsigned shared, hipStream_t stream, void **params,         \
                            void **extra))

// Null in the table where the runtime lacks them.
#define HIPSHIM_OPTIONAL(X)                                                          \
  X(hipExtStreamCreateWithCUMask, (hipStream_t *stream, uint32_t words, const uint32_t *mask)) \
  X(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode *mode))                \
  X(hipGetLastError, (void))                                                         \
  X(hipMemGetAddressRange, (hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t p))

// As above, but not in every header (or not with this prototype): hipcheck.c leaves them out. Properties are read at the
// offsets of their version, so the struct stays opaque.
#define HIPSHIM_UNCHECKED(X)                                                                                         \
  X(hipGetDeviceProperties, (void *properties, int device))                                                          \
  X(hipGetDevicePropertiesR0600, (void *properties, int device))                                                     \
  X(hipMemGetHandleForAddressRange, (void *handle, hipDeviceptr_t p, size_t bytes, int type, unsigned long long flags)) \
  X(hsa_amd_portable_export_dmabuf, (const void *p, size_t bytes, int *fd, uint64_t *offset))

struct hipshim {
  int major;
  int version;        // hipRuntimeGetVersion: major * 10^7 + minor * 10^5 + patch
  int exports_range;  // a dma-buf is of the range that was asked for, as CUDA's, not of the allocation around it, as HIP's
  char library[1024]; // the file that the entry points come from
#define HIPSHIM_FIELD(name, args) hipError_t(*name) args;
  HIPSHIM_REQUIRED(HIPSHIM_FIELD)
  HIPSHIM_OPTIONAL(HIPSHIM_FIELD)
  HIPSHIM_UNCHECKED(HIPSHIM_FIELD)
#undef HIPSHIM_FIELD
};

// hipshim_fill resolves every entry point and asks for the version. As hipshim_new.
int hipshim_fill(struct hipshim *t, hipshim_find find, void *context, char *missing, size_t n);

#endif
