// What Go calls on a HIP runtime, of which it sees an opaque table: table.h has it.
//
// Every function returns a hipError_t as an int. Device memory, streams, events, modules and graphs are raw handles in
// uintptr_t. Functions that take a device set it, call, and restore the thread's current device. An error is returned and
// forgotten: hipGetLastError does not find it. What a call's every part goes through takes the table as a number: Go's runtime
// would look at each pointer that crosses.
#ifndef HIPSHIM_H
#define HIPSHIM_H

#include <stddef.h>
#include <stdint.h>

struct hipshim;

typedef void *(*hipshim_find)(void *context, const char *name);

enum { HIPSHIM_MISSING = -1 };

// hipshim_new makes a table of what find resolves, which lasts as long as the process. library is copied. HIPSHIM_MISSING:
// missing names the first required entry point that find lacks; else what hipRuntimeGetVersion returned.
int hipshim_new(hipshim_find find, void *context, const char *library, struct hipshim **t, char *missing, size_t n);

// hipshim_open opens a library, or with resident set only finds it where the process already has it. 0: why says why.
uintptr_t hipshim_open(const char *path, int resident, char *why, size_t n);
// hipshim_given says whether a handle is one that dlopen gave, of a library that is loaded still.
int hipshim_given(uintptr_t handle);
// hipshim_where names the file that a handle's runtime was loaded from; 0 where handle is none or has no HIP runtime.
int hipshim_where(uintptr_t handle, char *file, size_t n);
// hipshim_load gives the one table of a handle from dlopen. As hipshim_new.
int hipshim_load(uintptr_t handle, struct hipshim **t, char *missing, size_t n);

const char *hipshim_library(const struct hipshim *t);
int hipshim_version(const struct hipshim *t);
enum { HIPSHIM_CU_MASK, HIPSHIM_CAPTURE_MODE, HIPSHIM_ADDRESS_RANGE, HIPSHIM_DMABUF };
// hipshim_has says whether the runtime has what is optional.
int hipshim_has(const struct hipshim *t, int what);

int hipshim_count(const struct hipshim *t, int *count);
// The calling thread's current device, which no other function changes.
int hipshim_current(const struct hipshim *t, int *device);
int hipshim_set_current(const struct hipshim *t, int device);
// The error that hipGetLastError finds, once; 0 where that is not there.
int hipshim_last_error(const struct hipshim *t);
// Its capture mode, which no other function changes: what it was is in *mode after.
int hipshim_exchange_capture_mode(const struct hipshim *t, int *mode);
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
int hipshim_stream_capturing(uintptr_t table, int device, uintptr_t stream, int *status);
int hipshim_stream_wait_event(const struct hipshim *t, int device, uintptr_t stream, uintptr_t event);
int hipshim_copy(uintptr_t table, int device, uintptr_t stream, uintptr_t dst, uintptr_t src, size_t bytes, int kind);
int hipshim_memset(const struct hipshim *t, int device, uintptr_t stream, uintptr_t dst, int value, size_t bytes);
int hipshim_wait64(uintptr_t table, int device, uintptr_t stream, uintptr_t p, uint64_t value, unsigned flags, uint64_t mask);
int hipshim_wait32(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint32_t value, unsigned flags, uint32_t mask);
int hipshim_write64(uintptr_t table, int device, uintptr_t stream, uintptr_t p, uint64_t value);
int hipshim_write32(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint32_t value);
// hipshim_write_wait queues a write of r at ready, then a wait until the word at done is at least d. It returns the
// error in the low half, and in the high half how many of the two were queued. With ask the stream is first asked whether it
// captures: the count is HIPSHIM_CAPTURES, and nothing is queued, where it does, and HIPSHIM_UNANSWERED beside the error where
// it does not say.
enum { HIPSHIM_CAPTURES = -1, HIPSHIM_UNANSWERED = -2 };
int64_t hipshim_write_wait(uintptr_t table, int device, uintptr_t stream, uintptr_t ready, uint64_t r, uintptr_t done, uint64_t d, int ask);

int hipshim_event_create(const struct hipshim *t, int device, unsigned flags, uintptr_t *event);
int hipshim_event_destroy(const struct hipshim *t, int device, uintptr_t event);
int hipshim_event_record(uintptr_t table, int device, uintptr_t event, uintptr_t stream);
int hipshim_event_query(uintptr_t table, int device, uintptr_t event);
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
int hipshim_launch(uintptr_t table, int device, uintptr_t stream, uintptr_t function, const struct hipshim_dims *dims, const void *args, const uint32_t *sizes, unsigned count);

#endif
