//go:build cgo && linux

#define _GNU_SOURCE
#include "cuda_load.h"

#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct cuda cuda_driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *opened;           // the handle behind cuda_driver
static struct hipshim *table;  // and HIP's table over it

static int fill(struct cuda *c, hipshim_find find, void *handle, char *missing, size_t n) {
#define TAKE(name, args) c->name = (CUresult(*) args)find(handle, #name);
#define NEED(name, args)               \
  TAKE(name, args)                     \
  if (!c->name) {                      \
    snprintf(missing, n, "%s", #name); \
    return HIPSHIM_MISSING;            \
  }
  CUDA_REQUIRED(NEED)
  CUDA_OPTIONAL(TAKE)
#undef NEED
#undef TAKE
  return 0;
}

// CU-mask streams and properties have no counterpart: those stay null in the table, as where a HIP lacks them.
static void *find_call(void *context, const char *name) {
  (void)context;
#define SAME(call, args) \
  if (!strcmp(name, #call)) return (void *)cuda_##call;
  HIPSHIM_REQUIRED(SAME)
  SAME(hipThreadExchangeStreamCaptureMode, ())
  SAME(hipMemGetAddressRange, ())
#undef SAME
  if (!strcmp(name, "hipMemGetHandleForAddressRange") && cuda_driver.cuMemGetHandleForAddressRange)
    return (void *)cuda_hipMemGetHandleForAddressRange;
  return NULL;
}

static int load(hipshim_find find, void *handle, const char *library, struct hipshim **t, char *missing, size_t n) {
  if (table && handle == opened) {
    *t = table;
    return 0;
  }
  if (table) return HIPSHIM_CUDA_SECOND;
  struct cuda c = {0};
  int e = fill(&c, find, handle, missing, n);
  if (!e) e = cuda_code(c.cuInit(0));
  int count = 0;
  if (!e) e = cuda_code(c.cuDeviceGetCount(&count));
  if (!e && count == 0) e = 100;  // hipErrorNoDevice
  if (e) return e;
  cuda_driver = c;
  e = hipshim_new(find_call, NULL, library, t, missing, n);
  if (e) return e;
  (*t)->exports_range = 1;
  opened = handle;
  table = *t;
  return 0;
}

int hipshim_cuda_new(hipshim_find find, void *handle, const char *library, struct hipshim **t, char *missing, size_t n) {
  pthread_mutex_lock(&lock);
  int e = load(find, handle, library, t, missing, n);
  pthread_mutex_unlock(&lock);
  return e;
}

static void *find_symbol(void *handle, const char *name) { return dlsym(handle, name); }

int hipshim_cuda_load(uintptr_t handle, struct hipshim **t, char *missing, size_t n) {
  char file[1024];
  if (!hipshim_cuda_where(handle, file, sizeof file)) {
    snprintf(missing, n, "cuInit");
    return HIPSHIM_MISSING;
  }
  return hipshim_cuda_new(find_symbol, (void *)handle, file, t, missing, n);
}

int hipshim_cuda_where(uintptr_t handle, char *file, size_t n) {
  void *symbol = hipshim_given(handle) ? dlsym((void *)handle, "cuInit") : NULL;
  Dl_info info;
  if (!symbol || !dladdr(symbol, &info) || !info.dli_fname) return 0;
  snprintf(file, n, "%s", info.dli_fname);
  return 1;
}
