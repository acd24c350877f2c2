// A HIP runtime as a table of its entry points, and what Go calls on it. No HIP header is needed; hipcheck.c compares with
// the vendor's wherever one is installed.
//
// Every function returns a hipError_t as an int. Device memory, streams, events, modules and graphs are raw handles in
// uintptr_t. Functions that take a device set it, call, and restore the thread's current device.
#ifndef HIPSHIM_H
#define HIPSHIM_H

#include <stddef.h>
#include <stdint.h>

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
  char library[1024]; // the file that the entry points come from
#define HIPSHIM_FIELD(name, args) hipError_t(*name) args;
  HIPSHIM_REQUIRED(HIPSHIM_FIELD)
  HIPSHIM_OPTIONAL(HIPSHIM_FIELD)
  HIPSHIM_UNCHECKED(HIPSHIM_FIELD)
#undef HIPSHIM_FIELD
};

typedef void *(*hipshim_find)(void *context, const char *name);

enum { HIPSHIM_MISSING = -1 };

// hipshim_fill resolves every entry point and asks for the version. HIPSHIM_MISSING: missing names the first required one
// that find lacks; else what hipRuntimeGetVersion returned.
int hipshim_fill(struct hipshim *t, hipshim_find find, void *context, char *missing, size_t n);

// hipshim_new is hipshim_fill into memory of its own, which lasts as long as the process. library is copied.
int hipshim_new(hipshim_find find, void *context, const char *library, struct hipshim **t, char *missing, size_t n);

// hipshim_open opens a library, or with resident set only finds it where the process already has it. 0: why says why.
uintptr_t hipshim_open(const char *path, int resident, char *why, size_t n);
// hipshim_where names the file that a handle's runtime was loaded from; 0 where handle has no HIP runtime.
int hipshim_where(uintptr_t handle, char *file, size_t n);
// hipshim_load gives the one table of a handle from dlopen. As hipshim_new.
int hipshim_load(uintptr_t handle, struct hipshim **t, char *missing, size_t n);

int hipshim_count(const struct hipshim *t, int *count);
int hipshim_attribute(const struct hipshim *t, int device, int attribute, int *value);
int hipshim_name(const struct hipshim *t, int device, char *name, size_t n);
int hipshim_pci(const struct hipshim *t, int device, char *id, size_t n);
int hipshim_arch(const struct hipshim *t, int device, char *arch, size_t n);
int hipshim_memory(const struct hipshim *t, int device, uint64_t *available, uint64_t *total);

int hipshim_malloc(const struct hipshim *t, int device, size_t bytes, uintptr_t *p);
int hipshim_free(const struct hipshim *t, int device, uintptr_t p);
// hipshim_host_malloc gives mapped, coherent memory and its address for the device.
int hipshim_host_malloc(const struct hipshim *t, int device, size_t bytes, void **host, uintptr_t *p);
int hipshim_host_free(const struct hipshim *t, int device, void *host);

struct hipshim_pointer {
  int type, device;
  uintptr_t device_ptr, host_ptr, base;
  size_t bytes;  // of the allocation at base; 0: unknown
};
int hipshim_pointer(const struct hipshim *t, int device, uintptr_t p, struct hipshim_pointer *out);
int hipshim_export_dmabuf(const struct hipshim *t, int device, uintptr_t p, size_t bytes, int *fd, uint64_t *offset);

int hipshim_stream_create(const struct hipshim *t, int device, unsigned flags, uintptr_t *stream);
int hipshim_stream_create_priority(const struct hipshim *t, int device, unsigned flags, int priority, uintptr_t *stream);
int hipshim_stream_create_mask(const struct hipshim *t, int device, uint32_t words, const uint32_t *mask, uintptr_t *stream);
int hipshim_priority_range(const struct hipshim *t, int device, int *least, int *greatest);
int hipshim_stream_destroy(const struct hipshim *t, int device, uintptr_t stream);
int hipshim_stream_query(const struct hipshim *t, int device, uintptr_t stream);
int hipshim_stream_capturing(const struct hipshim *t, int device, uintptr_t stream, int *status);
int hipshim_stream_wait_event(const struct hipshim *t, int device, uintptr_t stream, uintptr_t event);
int hipshim_copy(const struct hipshim *t, int device, uintptr_t stream, uintptr_t dst, uintptr_t src, size_t bytes, int kind);
int hipshim_memset(const struct hipshim *t, int device, uintptr_t stream, uintptr_t dst, int value, size_t bytes);
int hipshim_wait64(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint64_t value, unsigned flags, uint64_t mask);
int hipshim_wait32(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint32_t value, unsigned flags, uint32_t mask);
int hipshim_write64(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint64_t value);
int hipshim_write32(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint32_t value);
// hipshim_write_wait queues a write of r at ready, then a wait until the word at done is at least d. *queued counts those
// of the two that were queued.
int hipshim_write_wait(const struct hipshim *t, int device, uintptr_t stream, uintptr_t ready, uint64_t r, uintptr_t done, uint64_t d, int *queued);

int hipshim_event_create(const struct hipshim *t, int device, unsigned flags, uintptr_t *event);
int hipshim_event_destroy(const struct hipshim *t, int device, uintptr_t event);
int hipshim_event_record(const struct hipshim *t, int device, uintptr_t event, uintptr_t stream);
int hipshim_event_query(const struct hipshim *t, int device, uintptr_t event);
int hipshim_event_elapsed(const struct hipshim *t, int device, uintptr_t start, uintptr_t stop, float *milliseconds);

int hipshim_begin_capture(const struct hipshim *t, int device, uintptr_t stream, int mode);
int hipshim_end_capture(const struct hipshim *t, int device, uintptr_t stream, uintptr_t *graph);
int hipshim_graph_instantiate(const struct hipshim *t, int device, uintptr_t graph, uintptr_t *exec);
int hipshim_graph_launch(const struct hipshim *t, int device, uintptr_t exec, uintptr_t stream);
int hipshim_graph_destroy(const struct hipshim *t, int device, uintptr_t graph);
int hipshim_exec_destroy(const struct hipshim *t, int device, uintptr_t exec);

// hipshim_module_load copies the image, since the runtime may read it as long as the module lives. hipshim_module_unload
// frees the copy where the runtime let the module go.
int hipshim_module_load(const struct hipshim *t, int device, const void *image, size_t bytes, uintptr_t *module, void **copy);
int hipshim_module_unload(const struct hipshim *t, int device, uintptr_t module, void *copy);
int hipshim_module_function(const struct hipshim *t, int device, uintptr_t module, const char *name, uintptr_t *function);

enum { HIPSHIM_ARGUMENT_BYTES = 4096, HIPSHIM_ARGUMENTS = 64 };
struct hipshim_dims {
  unsigned grid[3], block[3], shared;
};
// hipshim_launch copies count arguments, packed one after the other in args.
int hipshim_launch(const struct hipshim *t, int device, uintptr_t stream, uintptr_t function, const struct hipshim_dims *dims, const void *args, const uint32_t *sizes, unsigned count);

#endif
