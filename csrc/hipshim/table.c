//go:build cgo && linux

#define _GNU_SOURCE
#include "table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hipshim_fill(struct hipshim *t, hipshim_find find, void *context, char *missing, size_t n) {
#define TAKE(name, args) t->name = (hipError_t(*) args)find(context, #name);
#define NEED(name, args)                \
  TAKE(name, args)                      \
  if (!t->name) {                       \
    snprintf(missing, n, "%s", #name);  \
    return HIPSHIM_MISSING;             \
  }
  HIPSHIM_REQUIRED(NEED)
  HIPSHIM_OPTIONAL(TAKE)
  HIPSHIM_UNCHECKED(TAKE)
#undef NEED
#undef TAKE
  int e = t->hipRuntimeGetVersion(&t->version);
  t->major = t->version / 10000000;
  return e;
}

// Tables last as long as the process: a Go value that holds one is never told when its last copy is gone.
static struct kept {
  struct hipshim table;
  uintptr_t handle;
  struct kept *next;
} *kept_tables;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static int keep(uintptr_t handle, hipshim_find find, void *context, const char *library, struct hipshim **t, char *missing, size_t n) {
  struct kept *k = calloc(1, sizeof *k);
  if (!k) return 2;  // hipErrorOutOfMemory
  int e = hipshim_fill(&k->table, find, context, missing, n);
  if (e) {
    free(k);
    return e;
  }
  snprintf(k->table.library, sizeof k->table.library, "%s", library);
  k->handle = handle;
  for (struct kept *old = kept_tables; old; old = old->next) {
    if (old->handle != handle || memcmp(&old->table, &k->table, sizeof k->table)) continue;
    free(k);
    *t = &old->table;
    return 0;
  }
  k->next = kept_tables;
  kept_tables = k;
  *t = &k->table;
  return 0;
}

int hipshim_new(hipshim_find find, void *context, const char *library, struct hipshim **t, char *missing, size_t n) {
  pthread_mutex_lock(&kept_lock);
  int e = keep(0, find, context, library, t, missing, n);
  pthread_mutex_unlock(&kept_lock);
  return e;
}

static void *find_symbol(void *handle, const char *name) { return dlsym(handle, name); }

int hipshim_load(uintptr_t handle, struct hipshim **t, char *missing, size_t n) {
  char file[sizeof(*t)->library];
  if (!hipshim_where(handle, file, sizeof file)) {
    snprintf(missing, n, "hipRuntimeGetVersion");
    return HIPSHIM_MISSING;
  }
  pthread_mutex_lock(&kept_lock);
  int e = 0;
  struct kept *k = kept_tables;
  while (k && k->handle != handle) k = k->next;
  if (k) *t = &k->table;
  else e = keep(handle, find_symbol, (void *)handle, file, t, missing, n);
  pthread_mutex_unlock(&kept_lock);
  return e;
}

uintptr_t hipshim_open(const char *path, int resident, char *why, size_t n) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | (resident ? RTLD_NOLOAD : 0));
  if (!handle) {
    const char *said = dlerror();
    snprintf(why, n, "%s", said ? said : "not in this process");
  }
  return (uintptr_t)handle;
}

int hipshim_where(uintptr_t handle, char *file, size_t n) {
  void *symbol = hipshim_given(handle) ? dlsym((void *)handle, "hipRuntimeGetVersion") : NULL;
  Dl_info info;
  if (!symbol || !dladdr(symbol, &info) || !info.dli_fname) return 0;
  snprintf(file, n, "%s", info.dli_fname);
  return 1;
}

const char *hipshim_library(const struct hipshim *t) { return t->library; }

int hipshim_version(const struct hipshim *t) { return t->version; }

int hipshim_has(const struct hipshim *t, int what) {
  switch (what) {
    case HIPSHIM_CU_MASK: return t->hipExtStreamCreateWithCUMask != NULL;
    case HIPSHIM_CAPTURE_MODE: return t->hipThreadExchangeStreamCaptureMode != NULL;
    case HIPSHIM_ADDRESS_RANGE: return t->hipMemGetAddressRange != NULL;
    case HIPSHIM_DMABUF: return t->hsa_amd_portable_export_dmabuf || (t->hipMemGetHandleForAddressRange && (t->exports_range || t->hipMemGetAddressRange));
  }
  return 0;
}
