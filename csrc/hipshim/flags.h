// Calls with flags that this project never passes but asks runtimes about: hipgo/conform.
#ifndef HIPSHIM_FLAGS_H
#define HIPSHIM_FLAGS_H

#include "hipshim.h"

// As hipshim_host_malloc, with hipHostMalloc's flags; freed by hipshim_host_free.
int hipshim_host_malloc_flags(const struct hipshim *t, int device, size_t bytes, unsigned flags, void **host, uintptr_t *p);
int hipshim_write64_flags(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint64_t value, unsigned flags);

#endif
