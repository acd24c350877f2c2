//go:build cgo && linux

#include "guard.h"

int hipshim_malloc(const struct hipshim *t, int device, size_t bytes, uintptr_t *p) {
  RELAXED_ON_DEVICE(t->hipMalloc((void **)p, bytes));
}

int hipshim_free(const struct hipshim *t, int device, uintptr_t p) {
  RELAXED_ON_DEVICE(t->hipFree((void *)p));
}

// Portable or WriteCombined alone would be non-coherent: a word in such memory is never seen by the other side.
enum { MAPPED = 2, COHERENT = 0x40000000 };

static int host_malloc(const struct hipshim *t, size_t bytes, void **host, uintptr_t *p) {
  int e = t->hipHostMalloc(host, bytes, MAPPED | COHERENT);
  if (e) return e;
  e = t->hipHostGetDevicePointer((void **)p, *host, 0);
  if (e) (void)t->hipHostFree(*host);
  return e;
}

int hipshim_host_malloc(const struct hipshim *t, int device, size_t bytes, void **host, uintptr_t *p) {
  RELAXED_ON_DEVICE(host_malloc(t, bytes, host, p));
}

int hipshim_host_free(const struct hipshim *t, int device, void *host) {
  RELAXED_ON_DEVICE(t->hipHostFree(host));
}

static int look(const struct hipshim *t, uintptr_t p, struct hipshim_pointer *out) {
  hipPointerAttribute_t a = {0};
  int e = t->hipPointerGetAttributes(&a, (const void *)p);
  if (e) return e;
  out->type = a.type;
  out->device = a.device;
  out->device_ptr = (uintptr_t)a.devicePointer;
  out->host_ptr = (uintptr_t)a.hostPointer;
  hipDeviceptr_t base = 0;
  size_t bytes = 0;
  // Memory that was registered and not allocated has no range: that is no error.
  if (t->hipMemGetAddressRange && !told(t, t->hipMemGetAddressRange(&base, &bytes, (hipDeviceptr_t)p)) && base) {
    out->base = (uintptr_t)base;
    out->bytes = bytes;
  }
  return 0;
}

int hipshim_pointer(const struct hipshim *t, int device, uintptr_t p, struct hipshim_pointer *out) {
  RELAXED_ON_DEVICE(look(t, p, out));
}

enum { DMABUF_FD = 1, NOT_SUPPORTED = 801, INVALID_VALUE = 1 };

static int export_dmabuf(const struct hipshim *t, uintptr_t p, size_t bytes, int *fd, uint64_t *offset) {
  *offset = 0;
  // ROCr's goes first: it says where in the buffer p lies.
  if (t->hsa_amd_portable_export_dmabuf && !t->hsa_amd_portable_export_dmabuf((const void *)p, bytes, fd, offset)) return 0;
  if (!t->hipMemGetHandleForAddressRange) return t->hsa_amd_portable_export_dmabuf ? INVALID_VALUE : NOT_SUPPORTED;
  *offset = 0;
  if (!t->exports_range) {
    hipDeviceptr_t base = 0;
    size_t size = 0;
    if (!t->hipMemGetAddressRange) return NOT_SUPPORTED;
    int e = t->hipMemGetAddressRange(&base, &size, (hipDeviceptr_t)p);
    if (e) return e;
    *offset = p - (uintptr_t)base;
  }
  return t->hipMemGetHandleForAddressRange(fd, (hipDeviceptr_t)p, bytes, DMABUF_FD, 0);
}

int hipshim_export_dmabuf(const struct hipshim *t, int device, uintptr_t p, size_t bytes, int *fd, uint64_t *offset) {
  RELAXED_ON_DEVICE(export_dmabuf(t, p, bytes, fd, offset));
}
