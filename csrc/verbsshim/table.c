//go:build cgo && linux && !noverbs

#define _GNU_SOURCE
#include "table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int fill(struct verbsshim *t, void *handle, char *missing, size_t n) {
#define NEED(name, version)                                  \
  t->name = (__typeof__(t->name))dlvsym(handle, #name, version); \
  if (!t->name) {                                            \
    snprintf(missing, n, "%s@%s", #name, version);           \
    return VERBSSHIM_MISSING;                                \
  }
#define TAKE(name, version, result, args) t->name = (result(*) args)dlvsym(handle, #name, version);
  VERBSSHIM_REQUIRED(NEED)
  VERBSSHIM_OPTIONAL(TAKE)
#undef NEED
#undef TAKE
  Dl_info info;
  if (dladdr((void *)t->ibv_get_device_list, &info) && info.dli_fname) snprintf(t->library, sizeof t->library, "%s", info.dli_fname);
  return 0;
}

// Tables last as long as the process: a Go value that holds one is never told when its last copy is gone.
static struct kept {
  struct verbsshim table;
  uintptr_t handle;
  struct kept *next;
} *kept_tables;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static int load(uintptr_t handle, struct verbsshim **t, char *missing, size_t n) {
  struct kept *k = kept_tables;
  while (k && k->handle != handle) k = k->next;
  if (!k) {
    k = calloc(1, sizeof *k);
    if (!k) return ENOMEM;
    int e = fill(&k->table, (void *)handle, missing, n);
    if (e) {
      free(k);
      return e;
    }
    k->handle = handle;
    k->next = kept_tables;
    kept_tables = k;
  }
  *t = &k->table;
  return 0;
}

int verbsshim_load(uintptr_t handle, struct verbsshim **t, char *missing, size_t n) {
  pthread_mutex_lock(&kept_lock);
  int e = load(handle, t, missing, n);
  pthread_mutex_unlock(&kept_lock);
  return e;
}

uintptr_t verbsshim_open(const char *path, char *why, size_t n) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *said = dlerror();
    snprintf(why, n, "%s", said ? said : "unknown");
  }
  return (uintptr_t)handle;
}

const char *verbsshim_library(const struct verbsshim *t) { return t->library; }

int verbsshim_has(const struct verbsshim *t, int what) {
  switch (what) {
    case VERBSSHIM_DEVICE_INDEX: return t->ibv_get_device_index != NULL;
    case VERBSSHIM_GID_TABLE: return t->_ibv_query_gid_table != NULL;
    case VERBSSHIM_REGISTER_ORD: return t->ibv_reg_mr_iova2 != NULL;
    case VERBSSHIM_DMABUF: return t->ibv_reg_dmabuf_mr != NULL;
    case VERBSSHIM_DATA_IN_ORDER: return t->ibv_query_qp_data_in_order != NULL;
  }
  return 0;
}
