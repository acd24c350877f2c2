//go:build cgo && linux

#include "flags.h"

#include "guard.h"

static int host_malloc(const struct hipshim *t, size_t bytes, unsigned flags, void **host, uintptr_t *p) {
  int e = t->hipHostMalloc(host, bytes, flags);
  if (e) return e;
  e = t->hipHostGetDevicePointer((void **)p, *host, 0);
  if (e) (void)t->hipHostFree(*host);
  return e;
}

int hipshim_host_malloc_flags(const struct hipshim *t, int device, size_t bytes, unsigned flags, void **host, uintptr_t *p) {
  RELAXED_ON_DEVICE(host_malloc(t, bytes, flags, host, p));
}

int hipshim_write64_flags(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint64_t value, unsigned flags) {
  ON_DEVICE(t->hipStreamWriteValue64((hipStream_t)stream, (void *)p, value, flags));
}
