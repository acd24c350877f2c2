//go:build cgo && linux

#include "guard.h"

#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, IMAGE_ALIGN = 4096 };

static int load(const struct hipshim *t, void *copy, uintptr_t *module) {
  RELAXED(t->hipModuleLoadData((hipModule_t *)module, copy));
}

int hipshim_module_load(const struct hipshim *t, int device, const void *image, size_t bytes, uintptr_t *module, void **copy) {
  if (bytes == 0 || bytes > SIZE_MAX - IMAGE_ALIGN) return INVALID_VALUE;
  // One zeroed byte more ends an image that is text.
  size_t room = (bytes + IMAGE_ALIGN) / IMAGE_ALIGN * IMAGE_ALIGN;
  char *kept = aligned_alloc(IMAGE_ALIGN, room);
  if (!kept) return OUT_OF_MEMORY;
  memcpy(kept, image, bytes);
  memset(kept + bytes, 0, room - bytes);
  int was, e = enter(t, device, &was);
  e = e ? told(t, e) : leave(t, device, was, load(t, kept, module));
  if (e) free(kept);
  else *copy = kept;
  return e;
}

static int unload(const struct hipshim *t, uintptr_t module, void *copy) {
  int mode = relax(t);
  int e = unrelax(t, mode, t->hipModuleUnload((hipModule_t)module));
  if (!e) free(copy);
  return e;
}

int hipshim_module_unload(const struct hipshim *t, int device, uintptr_t module, void *copy) {
  ON_DEVICE(unload(t, module, copy));
}

int hipshim_module_function(const struct hipshim *t, int device, uintptr_t module, const char *name, uintptr_t *function) {
  ON_DEVICE(t->hipModuleGetFunction((hipFunction_t *)function, (hipModule_t)module, name));
}

enum { ALIGN = 16 };

static int launch(const struct hipshim *t, hipStream_t stream, hipFunction_t f, const struct hipshim_dims *d, const char *args, const uint32_t *sizes, unsigned count) {
  _Alignas(ALIGN) char copy[HIPSHIM_ARGUMENT_BYTES + ALIGN * HIPSHIM_ARGUMENTS];
  void *params[HIPSHIM_ARGUMENTS + 1];
  size_t at = 0, from = 0;
  if (count > HIPSHIM_ARGUMENTS) return INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) {
    if (sizes[i] > HIPSHIM_ARGUMENT_BYTES - from) return INVALID_VALUE;
    params[i] = copy + at;
    memcpy(copy + at, args + from, sizes[i]);
    from += sizes[i];
    at = (at + sizes[i] + ALIGN - 1) / ALIGN * ALIGN;
  }
  params[count] = NULL;
  return t->hipModuleLaunchKernel(f, d->grid[0], d->grid[1], d->grid[2], d->block[0], d->block[1], d->block[2], d->shared, stream, params, NULL);
}

int hipshim_launch(uintptr_t table, int device, uintptr_t stream, uintptr_t function, const struct hipshim_dims *dims, const void *args, const uint32_t *sizes, unsigned count) {
  const struct hipshim *t = (const struct hipshim *)table;
  ON_DEVICE(launch(t, (hipStream_t)stream, (hipFunction_t)function, dims, args, sizes, count));
}
