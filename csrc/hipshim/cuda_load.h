// How Go has a table over the CUDA driver: see cuda.h.
#ifndef HIPSHIM_CUDA_LOAD_H
#define HIPSHIM_CUDA_LOAD_H

#include "hipshim.h"

enum { HIPSHIM_CUDA_SECOND = -2 };

// hipshim_cuda_new resolves the driver's entry points, initialises it, and gives HIP's table over it. A process has one
// driver: the first handle's table is given again for it, HIPSHIM_CUDA_SECOND is returned for another. HIPSHIM_MISSING:
// missing names the first required entry point that find lacks. Else a hipError_t: 100 where there is no GPU.
int hipshim_cuda_new(hipshim_find find, void *handle, const char *library, struct hipshim **t, char *missing, size_t n);

// hipshim_cuda_load is hipshim_cuda_new over a handle of dlopen.
int hipshim_cuda_load(uintptr_t handle, struct hipshim **t, char *missing, size_t n);

// hipshim_cuda_where names the file that a handle's CUDA driver was loaded from; 0 where it is no handle or has none.
int hipshim_cuda_where(uintptr_t handle, char *file, size_t n);

#endif
