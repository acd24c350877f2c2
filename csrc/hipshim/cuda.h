// The same table over the CUDA driver, HIP's other platform. Unproven until a receipt of an NVIDIA GPU exists.
//
// No CUDA header is needed: the prototypes used are declared here, under the names that libcuda.so.1 exports.
#ifndef HIPSHIM_CUDA_H
#define HIPSHIM_CUDA_H

#include "table.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext;
typedef void *CUstream;
typedef void *CUevent;
typedef void *CUmodule;
typedef void *CUfunction;
typedef void *CUgraph;
typedef void *CUgraphExec;

// X(name, arguments): every driver from CUDA 11.7 (515) on has these.
#define CUDA_REQUIRED(X)                                                                                    \
  X(cuInit, (unsigned flags))                                                                               \
  X(cuDriverGetVersion, (int *version))                                                                     \
  X(cuDeviceGetCount, (int *count))                                                                         \
  X(cuDeviceGet, (CUdevice *device, int ordinal))                                                           \
  X(cuDeviceGetName, (char *name, int length, CUdevice device))                                             \
  X(cuDeviceGetPCIBusId, (char *id, int length, CUdevice device))                                           \
  X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                                     \
  X(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                                        \
  X(cuCtxGetCurrent, (CUcontext *context))                                                                  \
  X(cuCtxSetCurrent, (CUcontext context))                                                                   \
  X(cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                               \
  X(cuMemGetInfo_v2, (size_t *available, size_t *total))                                                    \
  X(cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes))                                                          \
  X(cuMemFree_v2, (CUdeviceptr p))                                                                          \
  X(cuMemHostAlloc, (void **p, size_t bytes, unsigned flags))                                               \
  X(cuMemFreeHost, (void *p))                                                                               \
  X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *device, void *host, unsigned flags))                        \
  X(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *bytes, CUdeviceptr p))                             \
  X(cuPointerGetAttributes, (unsigned count, int *attributes, void **data, CUdeviceptr p))                  \
  X(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))                       \
  X(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream))                 \
  X(cuStreamCreate, (CUstream *stream, unsigned flags))                                                     \
  X(cuStreamCreateWithPriority, (CUstream *stream, unsigned flags, int priority))                           \
  X(cuStreamDestroy_v2, (CUstream stream))                                                                  \
  X(cuStreamQuery, (CUstream stream))                                                                       \
  X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                    \
  X(cuStreamWaitValue64_v2, (CUstream stream, CUdeviceptr p, uint64_t value, unsigned flags))               \
  X(cuStreamWaitValue32_v2, (CUstream stream, CUdeviceptr p, uint32_t value, unsigned flags))               \
  X(cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr p, uint64_t value, unsigned flags))              \
  X(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr p, uint32_t value, unsigned flags))              \
  X(cuStreamIsCapturing, (CUstream stream, int *status))                                                    \
  X(cuStreamBeginCapture_v2, (CUstream stream, int mode))                                                   \
  X(cuStreamEndCapture, (CUstream stream, CUgraph *graph))                                                  \
  X(cuThreadExchangeStreamCaptureMode, (int *mode))                                                         \
  X(cuGraphInstantiateWithFlags, (CUgraphExec *exec, CUgraph graph, unsigned long long flags))              \
  X(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                                     \
  X(cuGraphExecDestroy, (CUgraphExec exec))                                                                 \
  X(cuGraphDestroy, (CUgraph graph))                                                                        \
  X(cuEventCreate, (CUevent *event, unsigned flags))                                                        \
  X(cuEventRecord, (CUevent event, CUstream stream))                                                        \
  X(cuEventQuery, (CUevent event))                                                                          \
  X(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent stop))                                 \
  X(cuEventDestroy_v2, (CUevent event))                                                                     \
  X(cuModuleLoadData, (CUmodule *module, const void *image))                                                \
  X(cuModuleUnload, (CUmodule module))                                                                      \
  X(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))                         \
  X(cuLaunchKernel, (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,  \
                     unsigned bz, unsigned shared, CUstream stream, void **params, void **extra))

#define CUDA_OPTIONAL(X) \
  X(cuMemGetHandleForAddressRange, (void *handle, CUdeviceptr p, size_t bytes, int type, unsigned long long flags))

struct cuda {
#define CUDA_FIELD(name, args) CUresult(*name) args;
  CUDA_REQUIRED(CUDA_FIELD)
  CUDA_OPTIONAL(CUDA_FIELD)
#undef CUDA_FIELD
};

// cuda_driver is the process's one driver, filled once by hipshim_cuda_new.
extern struct cuda cuda_driver;

// cuda_code gives the hipError_t of a CUresult.
hipError_t cuda_code(CUresult result);

// What each of HIP's calls is here.
#define CUDA_CALL(name, args) hipError_t cuda_##name args;
HIPSHIM_REQUIRED(CUDA_CALL)
HIPSHIM_OPTIONAL(CUDA_CALL)
hipError_t cuda_hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t p, size_t bytes, int type, unsigned long long flags);
#undef CUDA_CALL

#endif
