//go:build cgo && linux

#include "guard.h"

#include <string.h>

int hipshim_count(const struct hipshim *t, int *count) {
  int e = t->hipInit(0);
  return told(t, e ? e : t->hipGetDeviceCount(count));
}

int hipshim_current(const struct hipshim *t, int *device) { return t->hipGetDevice(device); }

int hipshim_set_current(const struct hipshim *t, int device) { return t->hipSetDevice(device); }

int hipshim_last_error(const struct hipshim *t) { return t->hipGetLastError ? t->hipGetLastError() : 0; }

int hipshim_exchange_capture_mode(const struct hipshim *t, int *mode) {
  if (!t->hipThreadExchangeStreamCaptureMode) return 801;  // hipErrorNotSupported
  return t->hipThreadExchangeStreamCaptureMode(mode);
}

int hipshim_attribute(const struct hipshim *t, int device, int attribute, int *value) {
  return told(t, t->hipDeviceGetAttribute(value, attribute, device));
}

int hipshim_name(const struct hipshim *t, int device, char *name, size_t n) {
  return told(t, t->hipDeviceGetName(name, (int)n, device));
}

int hipshim_pci(const struct hipshim *t, int device, char *id, size_t n) {
  return told(t, t->hipDeviceGetPCIBusId(id, (int)n, device));
}

// The plain name keeps the layout of HIP 5 in every later library; headers from 6.0 on call R0600.
enum { PROPERTIES_BYTES = 16384, ARCH_R0000 = 396, ARCH_R0600 = 1160, ARCH_BYTES = 256 };

int hipshim_arch(const struct hipshim *t, int device, char *arch, size_t n) {
  _Alignas(16) char properties[PROPERTIES_BYTES];
  memset(properties, 0, sizeof properties);
  int e = 801, at = ARCH_R0000;  // hipErrorNotSupported
  if (t->major >= 6 && t->hipGetDevicePropertiesR0600) {
    at = ARCH_R0600;
    e = t->hipGetDevicePropertiesR0600(properties, device);
  } else if (t->hipGetDeviceProperties) {
    e = t->hipGetDeviceProperties(properties, device);
  }
  if (e || n == 0) return told(t, e);
  const char *end = memchr(properties + at, 0, ARCH_BYTES);
  size_t length = end ? (size_t)(end - properties - at) : ARCH_BYTES;
  if (length >= n) length = n - 1;
  memcpy(arch, properties + at, length);
  arch[length] = 0;
  return 0;
}

int hipshim_memory(const struct hipshim *t, int device, uint64_t *available, uint64_t *total) {
  size_t a = 0, b = 0;
  int was, e = enter(t, device, &was);
  if (e) return told(t, e);
  e = leave(t, device, was, t->hipMemGetInfo(&a, &b));
  *available = a;
  *total = b;
  return e;
}

int hipshim_priority_range(const struct hipshim *t, int device, int *least, int *greatest) {
  ON_DEVICE(t->hipDeviceGetStreamPriorityRange(least, greatest));
}
