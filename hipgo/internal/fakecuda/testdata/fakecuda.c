// A libcuda.so.1 for tests: the CUDA driver's calls over the software HIP device, with CUDA's own rules where they differ,
// namely contexts, cyclic comparison, no answer about unknown pointers, and PTX, whose kernels run as host twins: nothing is
// assembled. Built by package fakecuda with csrc/softhip and the twins of csrc/mailbox.
//
// FAKECUDA_LOG names a file that gets a line a call; FAKECUDA_FAIL=call=code makes a call fail; FAKECUDA_DEVICES is how many
// there are; FAKECUDA_CURRENT=own, 1 or none is the context that an engine left on each thread;
// CUDA_DEVICE_MAX_CONNECTIONS is how many hardware queues there are. -DOLD_DRIVER leaves cuStreamWaitValue64_v2 out, as drivers
// before CUDA 11.7 do, and has no device behind it.
#define _GNU_SOURCE
#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OLD_DRIVER
static void *softhip_find(void *ctx, const char *name) { return name ? NULL : ctx; }
#else
void *softhip_find(void *ctx, const char *name);
#endif

// twice is a kernel of a test's: it has no work.
static void twice(const void *args, unsigned blocks, unsigned threads) { (void)args, (void)blocks, (void)threads; }

#define EXPORT __attribute__((visibility("default")))
#define HIP(name, ...) ((int (*)())softhip_find(NULL, #name))(__VA_ARGS__)

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUhandle;

enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_PTX = 218, NOT_FOUND = 500 };
enum { GFX1151 = 0x4a };  // of the device underneath; nobody asks for it here

static void note(const char *format, ...) {
  const char *path = getenv("FAKECUDA_LOG");
  FILE *f = path ? fopen(path, "a") : NULL;
  if (!f) return;
  va_list values;
  va_start(values, format);
  vfprintf(f, format, values);
  va_end(values);
  fputc('\n', f);
  fclose(f);
}

// fault gives the planted code of a call.
static int fault(const char *call) {
  const char *rule = getenv("FAKECUDA_FAIL");
  size_t n = strlen(call);
  if (!rule || strncmp(rule, call, n) || rule[n] != '=') return 0;
  return atoi(rule + n + 1);
}

static int initialised;
static struct context {
  int device;
} primaries[16], engines_own = {0};
static _Thread_local struct context *current;

static int devices(void) {
  const char *n = getenv("FAKECUDA_DEVICES");
  return n ? atoi(n) : 2;
}

#define BEGIN(call)                            \
  do {                                         \
    int planted = fault(#call);                \
    if (planted) return planted;               \
    if (!initialised) return NOT_INITIALIZED;  \
  } while (0)

#define IN_CONTEXT(call)                       \
  do {                                         \
    BEGIN(call);                               \
    if (!current) return INVALID_CONTEXT;      \
    HIP(hipSetDevice, current->device);        \
  } while (0)

EXPORT CUresult cuInit(unsigned flags) {
  int planted = fault("cuInit");
  if (planted) return planted;
  if (flags) return INVALID_VALUE;
  if (devices() == 0) return NO_DEVICE;
  int (*configure)(const char *) = (int (*)(const char *))softhip_find(NULL, "softhip_configure");
  const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  char settings[128];
  snprintf(settings, sizeof settings, "devices=2 arch=gfx1151 capture_values=record hw_queues=%d missing=hipExtStreamCreateWithCUMask", queues ? atoi(queues) : 4);
  if (!initialised && configure(settings)) return NO_DEVICE;
  int (*kernel)(const char *, void (*)(const void *, unsigned, unsigned), unsigned) = (int (*)(const char *, void (*)(const void *, unsigned, unsigned), unsigned))softhip_find(NULL, "softhip_kernel");
  if (kernel("twice", twice, 8)) return NO_DEVICE;
  initialised = 1;
  return 0;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
  *version = 12040;
  return 0;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
  BEGIN(cuDeviceGetCount);
  *count = devices();
  return 0;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  BEGIN(cuDeviceGet);
  if (ordinal < 0 || ordinal >= devices()) return INVALID_DEVICE;
  *device = ordinal + 1000;  // no ordinal, to whom takes it for one
  return 0;
}

static int ordinal_of(CUdevice device) { return device - 1000; }

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  BEGIN(cuDeviceGetName);
  snprintf(name, (size_t)length, "NVIDIA Fake %d", ordinal_of(device));
  return 0;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  BEGIN(cuDeviceGetPCIBusId);
  snprintf(id, (size_t)length, "0000:%02X:00.0", 0xA + ordinal_of(device));
  return 0;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  BEGIN(cuDeviceGetAttribute);
  if (ordinal_of(device) < 0 || ordinal_of(device) >= devices()) return INVALID_DEVICE;
  switch (attribute) {
    case 75: *value = 9; return 0;
    case 76: *value = 0; return 0;
    case 16: *value = 132; return 0;
    case 18: *value = 0; return 0;
    case 122: *value = 1; return 0;
    default: *value = attribute; return 0;  // so that a test sees which was asked for
  }
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUhandle *context, CUdevice device) {
  BEGIN(cuDevicePrimaryCtxRetain);
  note("cuDevicePrimaryCtxRetain %d", ordinal_of(device));
  primaries[ordinal_of(device)].device = ordinal_of(device);
  *context = &primaries[ordinal_of(device)];
  return 0;
}

EXPORT CUresult cuCtxGetCurrent(CUhandle *context) {
  BEGIN(cuCtxGetCurrent);
  const char *engine = getenv("FAKECUDA_CURRENT");
  if (engine && !strcmp(engine, "own")) current = &engines_own;
  if (engine && !strcmp(engine, "1") && primaries[1].device) current = &primaries[1];
  if (engine && !strcmp(engine, "none")) current = NULL;
  *context = current;
  return 0;
}

EXPORT CUresult cuCtxSetCurrent(CUhandle context) {
  BEGIN(cuCtxSetCurrent);
  struct context *c = context;
  note("cuCtxSetCurrent %s", !c ? "none" : c == &engines_own ? "own" : c->device ? "1" : "0");
  current = c;
  return 0;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  IN_CONTEXT(cuCtxGetStreamPriorityRange);
  return HIP(hipDeviceGetStreamPriorityRange, least, greatest);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  IN_CONTEXT(cuMemGetInfo_v2);
  return HIP(hipMemGetInfo, available, total);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
  IN_CONTEXT(cuMemAlloc_v2);
  note("cuMemAlloc_v2 %zu", bytes);
  return HIP(hipMalloc, (void **)p, bytes);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
  IN_CONTEXT(cuMemFree_v2);
  return HIP(hipFree, (void *)(uintptr_t)p);
}

EXPORT CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  IN_CONTEXT(cuMemHostAlloc);
  note("cuMemHostAlloc %zu flags %u", bytes, flags);
  if (flags > 7) return INVALID_VALUE;
  return HIP(hipHostMalloc, p, bytes, 0x40000002u);
}

EXPORT CUresult cuMemFreeHost(void *p) {
  IN_CONTEXT(cuMemFreeHost);
  return HIP(hipHostFree, p);
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags) {
  IN_CONTEXT(cuMemHostGetDevicePointer_v2);
  return HIP(hipHostGetDevicePointer, (void **)device, host, flags);
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p) {
  IN_CONTEXT(cuMemGetAddressRange_v2);
  int r = HIP(hipMemGetAddressRange, (void **)base, bytes, (void *)(uintptr_t)p);
  return r ? NOT_FOUND : 0;
}

EXPORT CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **data, CUdeviceptr p) {
  BEGIN(cuPointerGetAttributes);
  struct {
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
  } a;
  memset(&a, 0, sizeof a);
  if (HIP(hipPointerGetAttributes, &a, (void *)(uintptr_t)p)) memset(&a, 0, sizeof a);  // unknown: zeros, and success
  for (unsigned i = 0; i < count; i++) {
    switch (attributes[i]) {
      case 2: *(unsigned *)data[i] = (unsigned)a.type; break;
      case 3: *(CUdeviceptr *)data[i] = (CUdeviceptr)(uintptr_t)a.device_pointer; break;
      case 4: *(void **)data[i] = a.host_pointer; break;
      case 8: *(unsigned *)data[i] = 0; break;
      case 9: *(int *)data[i] = a.device; break;
      default: return INVALID_VALUE;
    }
  }
  return 0;
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUhandle stream) {
  IN_CONTEXT(cuMemcpyAsync);
  return HIP(hipMemcpyAsync, (void *)(uintptr_t)dst, (void *)(uintptr_t)src, bytes, 4, stream);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t bytes, CUhandle stream) {
  IN_CONTEXT(cuMemsetD8Async);
  return HIP(hipMemsetAsync, (void *)(uintptr_t)dst, (int)value, bytes, stream);
}

EXPORT CUresult cuStreamCreate(CUhandle *stream, unsigned flags) {
  IN_CONTEXT(cuStreamCreate);
  note("cuStreamCreate flags %u device %d", flags, current->device);
  return HIP(hipStreamCreateWithFlags, stream, flags);
}

EXPORT CUresult cuStreamCreateWithPriority(CUhandle *stream, unsigned flags, int priority) {
  IN_CONTEXT(cuStreamCreateWithPriority);
  note("cuStreamCreateWithPriority flags %u priority %d", flags, priority);
  return HIP(hipStreamCreateWithPriority, stream, flags, priority);
}

EXPORT CUresult cuStreamDestroy_v2(CUhandle stream) {
  IN_CONTEXT(cuStreamDestroy_v2);
  return HIP(hipStreamDestroy, stream);
}

EXPORT CUresult cuStreamQuery(CUhandle stream) {
  IN_CONTEXT(cuStreamQuery);
  return HIP(hipStreamQuery, stream);
}

EXPORT CUresult cuStreamWaitEvent(CUhandle stream, CUhandle event, unsigned flags) {
  IN_CONTEXT(cuStreamWaitEvent);
  return HIP(hipStreamWaitEvent, stream, event, flags);
}

// Cyclic, for values of the lower half: at least the value, and the top bit is clear (not all ones beside it). In this order, since a
// word is often smaller and without that bit before it gets a value that is neither.
#ifndef OLD_DRIVER
EXPORT CUresult cuStreamWaitValue64_v2(CUhandle stream, CUdeviceptr p, uint64_t value, unsigned flags) {
  IN_CONTEXT(cuStreamWaitValue64_v2);
  note("cuStreamWaitValue64_v2 %llu flags %u", (unsigned long long)value, flags);
  int r = HIP(hipStreamWaitValue64, stream, (void *)(uintptr_t)p, value, flags, UINT64_MAX);
  if (r || flags != 0 || value > INT64_MAX) return r;
  return HIP(hipStreamWaitValue64, stream, (void *)(uintptr_t)p, (uint64_t)INT64_MAX, 3u, UINT64_MAX);
}
#endif

EXPORT CUresult cuStreamWaitValue32_v2(CUhandle stream, CUdeviceptr p, uint32_t value, unsigned flags) {
  IN_CONTEXT(cuStreamWaitValue32_v2);
  note("cuStreamWaitValue32_v2 %u flags %u", value, flags);
  int r = HIP(hipStreamWaitValue32, stream, (void *)(uintptr_t)p, value, flags, UINT32_MAX);
  if (r || flags != 0 || value > INT32_MAX) return r;
  return HIP(hipStreamWaitValue32, stream, (void *)(uintptr_t)p, (uint32_t)INT32_MAX, 3u, UINT32_MAX);
}

EXPORT CUresult cuStreamWriteValue64_v2(CUhandle stream, CUdeviceptr p, uint64_t value, unsigned flags) {
  IN_CONTEXT(cuStreamWriteValue64_v2);
  note("cuStreamWriteValue64_v2 %llu flags %u", (unsigned long long)value, flags);
  return HIP(hipStreamWriteValue64, stream, (void *)(uintptr_t)p, value, flags);
}

EXPORT CUresult cuStreamWriteValue32_v2(CUhandle stream, CUdeviceptr p, uint32_t value, unsigned flags) {
  IN_CONTEXT(cuStreamWriteValue32_v2);
  return HIP(hipStreamWriteValue32, stream, (void *)(uintptr_t)p, value, flags);
}

EXPORT CUresult cuStreamIsCapturing(CUhandle stream, int *status) {
  IN_CONTEXT(cuStreamIsCapturing);
  return HIP(hipStreamIsCapturing, stream, status);
}

EXPORT CUresult cuStreamBeginCapture_v2(CUhandle stream, int mode) {
  IN_CONTEXT(cuStreamBeginCapture_v2);
  return HIP(hipStreamBeginCapture, stream, mode);
}

EXPORT CUresult cuStreamEndCapture(CUhandle stream, CUhandle *graph) {
  IN_CONTEXT(cuStreamEndCapture);
  return HIP(hipStreamEndCapture, stream, graph);
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  BEGIN(cuThreadExchangeStreamCaptureMode);
  return HIP(hipThreadExchangeStreamCaptureMode, mode);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUhandle *exec, CUhandle graph, unsigned long long flags) {
  IN_CONTEXT(cuGraphInstantiateWithFlags);
  note("cuGraphInstantiateWithFlags %llu", flags);
  return HIP(hipGraphInstantiate, exec, graph, NULL, NULL, (size_t)0);
}

EXPORT CUresult cuGraphLaunch(CUhandle exec, CUhandle stream) {
  IN_CONTEXT(cuGraphLaunch);
  return HIP(hipGraphLaunch, exec, stream);
}

EXPORT CUresult cuGraphExecDestroy(CUhandle exec) {
  BEGIN(cuGraphExecDestroy);
  return HIP(hipGraphExecDestroy, exec);
}

EXPORT CUresult cuGraphDestroy(CUhandle graph) {
  BEGIN(cuGraphDestroy);
  return HIP(hipGraphDestroy, graph);
}

EXPORT CUresult cuEventCreate(CUhandle *event, unsigned flags) {
  IN_CONTEXT(cuEventCreate);
  note("cuEventCreate flags %u", flags);
  return HIP(hipEventCreateWithFlags, event, flags);
}

EXPORT CUresult cuEventRecord(CUhandle event, CUhandle stream) {
  IN_CONTEXT(cuEventRecord);
  return HIP(hipEventRecord, event, stream);
}

EXPORT CUresult cuEventQuery(CUhandle event) {
  IN_CONTEXT(cuEventQuery);
  return HIP(hipEventQuery, event);
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUhandle start, CUhandle stop) {
  IN_CONTEXT(cuEventElapsedTime);
  return HIP(hipEventElapsedTime, milliseconds, start, stop);
}

EXPORT CUresult cuEventDestroy_v2(CUhandle event) {
  IN_CONTEXT(cuEventDestroy_v2);
  return HIP(hipEventDestroy, event);
}

// A module is PTX: of it only the target and the names of its kernels are read, and their host twins run.
enum { MOST_KERNELS = 8, NAME = 64 };

static int target_of(const char *ptx) {
  const char *at = strstr(ptx, "\n.target sm_");
  return at ? atoi(at + strlen("\n.target sm_")) : 0;
}

static int entries_of(const char *ptx, char names[][NAME]) {
  int n = 0;
  for (const char *at = ptx; n < MOST_KERNELS && (at = strstr(at, ".entry ")) != NULL;) {
    at += strlen(".entry ");
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$");
    if (length == 0 || length >= NAME - 3) continue;
    snprintf(names[n++], NAME, "%.*s.kd", (int)length, at);
  }
  return n;
}

// code_object is what the device underneath takes for those kernels: an ELF of its arch that has their names alone.
static const void *code_object(char names[][NAME], int count) {
  static struct {
    Elf64_Ehdr header;
    Elf64_Shdr sections[3];
    Elf64_Sym symbols[MOST_KERNELS + 1];
    char strings[MOST_KERNELS * NAME + 1];
  } o;
  memset(&o, 0, sizeof o);
  memcpy(o.header.e_ident, ELFMAG, SELFMAG);
  o.header.e_ident[EI_CLASS] = ELFCLASS64;
  o.header.e_machine = 224;  // amdgcn
  o.header.e_flags = GFX1151;
  o.header.e_shoff = (size_t)((char *)o.sections - (char *)&o);
  o.header.e_shentsize = sizeof *o.sections;
  o.header.e_shnum = 3;
  o.sections[1] = (Elf64_Shdr){.sh_type = SHT_DYNSYM, .sh_offset = (size_t)((char *)o.symbols - (char *)&o), .sh_link = 2,
                               .sh_size = (size_t)(count + 1) * sizeof *o.symbols, .sh_entsize = sizeof *o.symbols};
  o.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = (size_t)(o.strings - (char *)&o), .sh_size = sizeof o.strings};
  for (int i = 0; i < count; i++) {
    o.symbols[i + 1].st_name = (Elf64_Word)(1 + i * NAME);
    memcpy(o.strings + 1 + i * NAME, names[i], NAME);
  }
  return &o;
}

EXPORT CUresult cuModuleLoadData(CUhandle *module, const void *image) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  IN_CONTEXT(cuModuleLoadData);
  note("cuModuleLoadData %zu bytes of text", strlen(image));
  const char *ptx = image;
  if (!strstr(ptx, ".version ")) return INVALID_IMAGE;
  int target = target_of(ptx);
  if (target == 0 || target > 90) return INVALID_PTX;
  char names[MOST_KERNELS][NAME];
  int count = entries_of(ptx, names);
  pthread_mutex_lock(&lock);
  int r = HIP(hipModuleLoadData, module, code_object(names, count));
  pthread_mutex_unlock(&lock);
  return r;
}

EXPORT CUresult cuModuleUnload(CUhandle module) {
  IN_CONTEXT(cuModuleUnload);
  return HIP(hipModuleUnload, module);
}

EXPORT CUresult cuModuleGetFunction(CUhandle *function, CUhandle module, const char *name) {
  IN_CONTEXT(cuModuleGetFunction);
  return HIP(hipModuleGetFunction, function, module, name);
}

// CUDA ends its extra list with 0, the device underneath with 3.
EXPORT CUresult cuLaunchKernel(CUhandle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, CUhandle stream, void **params, void **extra) {
  IN_CONTEXT(cuLaunchKernel);
  if (!stream || (params && extra)) return INVALID_VALUE;
  note("cuLaunchKernel grid %u %u %u block %u %u %u shared %u argument %llu extra %d", gx, gy, gz, bx, by, bz, shared,
       params ? *(unsigned long long *)params[0] : 0ull, extra != NULL);
  void *list[5] = {0};
  for (int i = 0; extra && i < 4 && extra[i]; i++) list[i] = extra[i];
  if (extra) list[4] = (void *)3;
  return HIP(hipModuleLaunchKernel, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra ? list : NULL);
}
