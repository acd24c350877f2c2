//go:build cgo && linux

// Questions about addresses.
#include <unistd.h>

#include "world.h"

// The numbers of hipMemoryType changed at 6.0.
static int memory_type(enum memory kind) {
    bool device = kind == MEMORY_DEVICE;
    return version_at_least(6, 0) ? (device ? 2 : 1) : (device ? 1 : 0);
}

API(hipPointerGetAttributes)(hipPointerAttribute *out, const void *p) {
    CALL(hipPointerGetAttributes);
    if (out == NULL || p == NULL)
        return call_leave(hipErrorInvalidValue);
    pthread_mutex_lock(&world_lock);
    struct alloc *a = alloc_find((uintptr_t)p);
    if (a != NULL) {
        void *at = (void *)(uintptr_t)p;
        *out = (hipPointerAttribute){.type = memory_type(a->kind),
                                     .device = a->device,
                                     .devicePointer = at,
                                     .hostPointer = a->kind == MEMORY_DEVICE ? NULL : at,
                                     .allocationFlags = a->flags};
    }
    pthread_mutex_unlock(&world_lock);
    if (a != NULL)
        return hipSuccess;
    if (!version_at_least(6, 0))
        return call_leave(hipErrorInvalidValue);
    *out = (hipPointerAttribute){.type = 0, .device = -2}; // unregistered
    return hipSuccess;
}

API(hipMemGetAddressRange)(void **base, size_t *size, void *p) {
    CALL(hipMemGetAddressRange);
    pthread_mutex_lock(&world_lock);
    struct alloc *a = alloc_find((uintptr_t)p);
    if (a != NULL && base != NULL)
        *base = (void *)a->base;
    if (a != NULL && size != NULL)
        *size = a->size;
    pthread_mutex_unlock(&world_lock);
    return call_leave(a == NULL ? hipErrorInvalidDevicePointer : hipSuccess);
}

API(hipHostGetDevicePointer)(void **out, void *p, unsigned flags) {
    CALL(hipHostGetDevicePointer);
    if (out == NULL || flags != 0)
        return call_leave(hipErrorInvalidValue);
    *out = NULL;
    pthread_mutex_lock(&world_lock);
    struct alloc *a = alloc_find((uintptr_t)p);
    bool host = a != NULL && a->kind != MEMORY_DEVICE;
    pthread_mutex_unlock(&world_lock);
    if (host)
        *out = p;
    return call_leave(host ? hipSuccess : hipErrorInvalidValue);
}

API(hipHostGetFlags)(unsigned *flags, void *p) {
    CALL(hipHostGetFlags);
    if (flags == NULL)
        return call_leave(hipErrorInvalidValue);
    pthread_mutex_lock(&world_lock);
    struct alloc *a = alloc_find((uintptr_t)p);
    bool host = a != NULL && a->kind != MEMORY_DEVICE;
    if (host)
        *flags = a->flags;
    pthread_mutex_unlock(&world_lock);
    return call_leave(host ? hipSuccess : hipErrorInvalidValue);
}

// The exported descriptor is the allocation's memfd: whoever maps it sees the device's bytes.
API(hipMemGetHandleForAddressRange)(void *handle, void *p, size_t n, int type, unsigned long long flags) {
    CALL(hipMemGetHandleForAddressRange);
    if (handle == NULL || type != 1 || flags > 1 || n == 0)
        return call_leave(hipErrorInvalidValue);
    pthread_mutex_lock(&world_lock);
    struct alloc *a = alloc_find((uintptr_t)p);
    int fd = -1, code = hipErrorInvalidValue;
    if (a != NULL && a->kind == MEMORY_DEVICE && n <= a->size - ((uintptr_t)p - a->base)) {
        fd = dup(a->fd);
        code = fd < 0 ? hipErrorOutOfMemory : hipSuccess;
    }
    pthread_mutex_unlock(&world_lock);
    if (code == hipSuccess)
        *(int *)handle = fd;
    return call_leave(code);
}
