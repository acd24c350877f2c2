//go:build cgo && linux

// Memory, streams, events, graphs and modules: HIP's call, and CUDA's for it.
#include "cuda.h"

#define GIVE(call) return cuda_code(cuda_driver.call)
#define AT(p) ((CUdeviceptr)(uintptr_t)(p))

enum { INVALID_VALUE = 1, INVALID_DIRECTION = 21, NOT_SUPPORTED = 801 };

hipError_t cuda_hipMemGetInfo(size_t *available, size_t *total) { GIVE(cuMemGetInfo_v2(available, total)); }

hipError_t cuda_hipMalloc(void **p, size_t bytes) {
  CUdeviceptr at = 0;
  CUresult r = cuda_driver.cuMemAlloc_v2(&at, bytes);
  if (!r) *p = (void *)(uintptr_t)at;
  return cuda_code(r);
}

hipError_t cuda_hipFree(void *p) {
  if (!p) return 0;
  GIVE(cuMemFree_v2(AT(p)));
}

// All pinned memory is coherent and visible to every context here: what HIP must be asked for is always so, and memory that
// is not coherent cannot be had.
hipError_t cuda_hipHostMalloc(void **p, size_t bytes, unsigned flags) {
  enum { PORTABLE = 1, MAPPED = 2, WRITE_COMBINED = 4, COHERENT = 0x40000000 };
  if (flags & ~(unsigned)(PORTABLE | MAPPED | WRITE_COMBINED | COHERENT)) return INVALID_VALUE;
  GIVE(cuMemHostAlloc(p, bytes, PORTABLE | MAPPED | (flags & WRITE_COMBINED)));
}

hipError_t cuda_hipHostFree(void *p) {
  if (!p) return 0;
  GIVE(cuMemFreeHost(p));
}

hipError_t cuda_hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
  CUdeviceptr at = 0;
  CUresult r = cuda_driver.cuMemHostGetDevicePointer_v2(&at, host, flags);
  if (!r) *device = (void *)(uintptr_t)at;
  return cuda_code(r);
}

hipError_t cuda_hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t p) {
  CUdeviceptr at = 0;
  CUresult r = cuda_driver.cuMemGetAddressRange_v2(&at, bytes, AT(p));
  if (!r) *base = (hipDeviceptr_t)(uintptr_t)at;
  return cuda_code(r);
}

// Types are numbered as from HIP 6.0 on, which the version that this table tells implies.
static int memory_type(unsigned cuda, unsigned managed) {
  enum { HOST = 1, DEVICE = 2, ARRAY = 3, UNIFIED = 4, HIP_MANAGED = 3, HIP_ARRAY = 10, HIP_UNIFIED = 11 };
  if (managed) return HIP_MANAGED;
  switch (cuda) {
    case HOST:
    case DEVICE: return (int)cuda;
    case ARRAY: return HIP_ARRAY;
    case UNIFIED: return HIP_UNIFIED;
    default: return 0;  // memory that CUDA does not know: Unregistered
  }
}

hipError_t cuda_hipPointerGetAttributes(hipPointerAttribute_t *out, const void *p) {
  enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, DEVICE_ORDINAL = 9 };
  int asked[] = {MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, IS_MANAGED, DEVICE_ORDINAL};
  unsigned type = 0, managed = 0;
  int ordinal = 0;
  CUdeviceptr device = 0;
  void *host = NULL;
  void *answers[] = {&type, &device, &host, &managed, &ordinal};
  CUresult r = cuda_driver.cuPointerGetAttributes(sizeof asked / sizeof *asked, asked, answers, AT(p));
  if (r) return cuda_code(r);
  *out = (hipPointerAttribute_t){.type = memory_type(type, managed), .device = ordinal, .devicePointer = (void *)(uintptr_t)device, .hostPointer = host, .isManaged = managed != 0};
  return 0;
}

hipError_t cuda_hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t p, size_t bytes, int type, unsigned long long flags) {
  GIVE(cuMemGetHandleForAddressRange(handle, AT(p), bytes, type, flags));
}

// Addresses are unified: they say the direction.
hipError_t cuda_hipMemcpyAsync(void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  if ((unsigned)kind > 4) return INVALID_DIRECTION;
  if (!bytes) return 0;
  GIVE(cuMemcpyAsync(AT(dst), AT(src), bytes, stream));
}

hipError_t cuda_hipMemsetAsync(void *dst, int value, size_t bytes, hipStream_t stream) {
  if (!bytes) return 0;
  GIVE(cuMemsetD8Async(AT(dst), (unsigned char)value, bytes, stream));
}

hipError_t cuda_hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) { GIVE(cuStreamCreate(stream, flags)); }

hipError_t cuda_hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority) {
  GIVE(cuStreamCreateWithPriority(stream, flags, priority));
}

hipError_t cuda_hipDeviceGetStreamPriorityRange(int *least, int *greatest) { GIVE(cuCtxGetStreamPriorityRange(least, greatest)); }
hipError_t cuda_hipStreamDestroy(hipStream_t stream) { GIVE(cuStreamDestroy_v2(stream)); }
hipError_t cuda_hipStreamQuery(hipStream_t stream) { GIVE(cuStreamQuery(stream)); }

hipError_t cuda_hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  GIVE(cuStreamWaitEvent(stream, event, flags));
}

// The conditions have HIP's numbers. Gte differs: it is cyclic, (int64_t)(word - value) >= 0, so a word that leads by half
// the range or more does not meet it. There are no masks.
enum { LAST_CONDITION = 3 };

hipError_t cuda_hipStreamWaitValue64(hipStream_t stream, void *p, uint64_t value, unsigned flags, uint64_t mask) {
  if (flags > LAST_CONDITION) return INVALID_VALUE;
  if (mask != UINT64_MAX) return NOT_SUPPORTED;
  GIVE(cuStreamWaitValue64_v2(stream, AT(p), value, flags));
}

hipError_t cuda_hipStreamWaitValue32(hipStream_t stream, void *p, uint32_t value, unsigned flags, uint32_t mask) {
  if (flags > LAST_CONDITION) return INVALID_VALUE;
  if (mask != UINT32_MAX) return NOT_SUPPORTED;
  GIVE(cuStreamWaitValue32_v2(stream, AT(p), value, flags));
}

// Flag 0 has the barrier that HIP's write has; CUDA's flag 1 would take it away.
hipError_t cuda_hipStreamWriteValue64(hipStream_t stream, void *p, uint64_t value, unsigned flags) {
  if (flags) return INVALID_VALUE;
  GIVE(cuStreamWriteValue64_v2(stream, AT(p), value, 0));
}

hipError_t cuda_hipStreamWriteValue32(hipStream_t stream, void *p, uint32_t value, unsigned flags) {
  if (flags) return INVALID_VALUE;
  GIVE(cuStreamWriteValue32_v2(stream, AT(p), value, 0));
}

hipError_t cuda_hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status) { GIVE(cuStreamIsCapturing(stream, status)); }
hipError_t cuda_hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) { GIVE(cuStreamBeginCapture_v2(stream, mode)); }
hipError_t cuda_hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph) { GIVE(cuStreamEndCapture(stream, graph)); }
hipError_t cuda_hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) { GIVE(cuThreadExchangeStreamCaptureMode(mode)); }

hipError_t cuda_hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *node, char *log, size_t bytes) {
  if (node) *node = NULL;
  if (log && bytes) *log = 0;
  GIVE(cuGraphInstantiateWithFlags(exec, graph, 0));
}

hipError_t cuda_hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) { GIVE(cuGraphLaunch(exec, stream)); }
hipError_t cuda_hipGraphExecDestroy(hipGraphExec_t exec) { GIVE(cuGraphExecDestroy(exec)); }
hipError_t cuda_hipGraphDestroy(hipGraph_t graph) { GIVE(cuGraphDestroy(graph)); }

hipError_t cuda_hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  enum { BOTH_HAVE = 7 };  // BlockingSync, DisableTiming, Interprocess
  if (flags & ~(unsigned)BOTH_HAVE) return INVALID_VALUE;
  GIVE(cuEventCreate(event, flags));
}

hipError_t cuda_hipEventRecord(hipEvent_t event, hipStream_t stream) { GIVE(cuEventRecord(event, stream)); }
hipError_t cuda_hipEventQuery(hipEvent_t event) { GIVE(cuEventQuery(event)); }
hipError_t cuda_hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) { GIVE(cuEventElapsedTime(milliseconds, start, stop)); }
hipError_t cuda_hipEventDestroy(hipEvent_t event) { GIVE(cuEventDestroy_v2(event)); }

// PTX is text that ends with a zero byte, or a cubin; the driver tells them apart.
hipError_t cuda_hipModuleLoadData(hipModule_t *module, const void *image) { GIVE(cuModuleLoadData(module, image)); }
hipError_t cuda_hipModuleUnload(hipModule_t module) { GIVE(cuModuleUnload(module)); }

hipError_t cuda_hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  GIVE(cuModuleGetFunction(function, module, name));
}

// HIP ends its extra list with 3, CUDA with 0; the markers before, 1 and 2, are the same.
hipError_t cuda_hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                      unsigned bz, unsigned shared, hipStream_t stream, void **params, void **extra) {
  enum { LIST = 5, HIP_END = 3 };
  void *list[LIST] = {0};
  for (int i = 0; extra && extra[i] != (void *)HIP_END; i += 2) {
    if (i + 2 >= LIST) return INVALID_VALUE;
    list[i] = extra[i];
    list[i + 1] = extra[i + 1];
  }
  GIVE(cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra ? list : NULL));
}
