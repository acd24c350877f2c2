//go:build cgo && linux

// The registry of allocations. Device memory of a discrete device has two mappings of one memfd: the address that the
// caller gets, which nobody may touch, and the view, which the workers touch.

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "world.h"

enum { PAGE = 4096, POISON = 0xDB };

// Index of the first allocation whose base is above p.
static int above(uintptr_t p) {
    int low = 0, high = world.alloc_count;
    while (low < high) {
        int mid = (low + high) / 2;
        if (world.allocs[mid]->base <= p)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct alloc *alloc_find(uintptr_t p) {
    int i = above(p);
    if (i == 0)
        return NULL;
    struct alloc *a = world.allocs[i - 1];
    return p - a->base < a->size ? a : NULL;
}

char *alloc_view(struct alloc *a, uintptr_t p) { return a->view + (p - a->base); }

bool was_freed(uintptr_t p, uint64_t *number) {
    for (size_t i = 0; i < sizeof world.freed / sizeof *world.freed; i++)
        if (world.freed[i].at != NULL && p - (uintptr_t)world.freed[i].at < world.freed[i].bytes) {
            *number = world.freed[i].number;
            return true;
        }
    return false;
}

void use(struct op *o, struct alloc *a) {
    if (o->uses < MAX_USES) {
        o->used[o->uses++] = a;
        atomic_fetch_add(&a->uses, 1);
    }
}

void unuse(struct op *o) {
    while (o->uses > 0)
        atomic_fetch_sub_explicit(&o->used[--o->uses]->uses, 1, memory_order_release);
}

static int registry_add(struct alloc *a) {
    if (world.alloc_count == world.alloc_cap) {
        int cap = world.alloc_cap == 0 ? 256 : world.alloc_cap * 2;
        struct alloc **grown = realloc(world.allocs, (size_t)cap * sizeof *grown);
        if (grown == NULL)
            return hipErrorOutOfMemory;
        world.allocs = grown;
        world.alloc_cap = cap;
    }
    int i = above(a->base);
    memmove(&world.allocs[i + 1], &world.allocs[i], (size_t)(world.alloc_count - i) * sizeof *world.allocs);
    world.allocs[i] = a;
    world.alloc_count++;
    a->number = ++world.next_number;
    return hipSuccess;
}

static void registry_remove(struct alloc *a) {
    int i = above(a->base) - 1;
    world.alloc_count--;
    memmove(&world.allocs[i], &world.allocs[i + 1], (size_t)(world.alloc_count - i) * sizeof *world.allocs);
}

// unmap gives a's memory back; the addresses that the caller knew stay reserved and untouchable.
static void unmap(struct alloc *a) {
    forget_unseen(a->view, a->size);
    if (a->kind != MEMORY_REGISTERED && a->size > 0)
        memset(a->view, POISON, a->size);
    if (a->view != (char *)a->base)
        munmap(a->view, a->mapped);
    if (a->agreed != NULL)
        munmap(a->agreed, a->mapped);
    if (a->fd >= 0)
        close(a->fd);
    if (a->reserved != NULL) {
        retire(a->reserved, a->reserved_bytes);
        unsigned i = world.freed_next++ % (sizeof world.freed / sizeof *world.freed);
        world.freed[i].at = a->reserved;
        world.freed[i].bytes = a->reserved_bytes;
        world.freed[i].number = a->number;
    }
    free(a);
}

void memory_end(void) {
    for (int i = 0; i < world.alloc_count; i++)
        unmap(world.allocs[i]);
    free(world.allocs);
}

static bool map_host(struct alloc *a) {
    a->view = (char *)a->base;
    return mprotect(a->view, a->mapped, PROT_READ | PROT_WRITE) == 0;
}

// Device memory keeps its descriptor, for a dma-buf of it.
static bool map_device(struct alloc *a, bool discrete) {
    a->fd = memfd_create("softhip", MFD_CLOEXEC);
    if (a->fd < 0 || ftruncate(a->fd, (off_t)a->mapped) != 0)
        return false;
    int mine = discrete ? PROT_NONE : PROT_READ | PROT_WRITE;
    if (mmap((void *)a->base, a->mapped, mine, MAP_SHARED | MAP_FIXED, a->fd, 0) == MAP_FAILED)
        return false;
    a->view = (char *)a->base;
    if (!discrete)
        return true;
    void *view = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
    a->view = view == MAP_FAILED ? NULL : view;
    return view != MAP_FAILED;
}

static bool map_stale(struct alloc *a) {
    void *view = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *agreed = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    a->view = view == MAP_FAILED ? NULL : view;
    a->agreed = agreed == MAP_FAILED ? NULL : agreed;
    a->stale = true;
    return a->view != NULL && a->agreed != NULL;
}

// map reserves a guard page, the bytes, and a guard page, and maps the bytes.
static bool map(struct alloc *a) {
    a->mapped = (a->size + PAGE - 1) & ~(size_t)(PAGE - 1);
    a->reserved_bytes = a->mapped + 2 * PAGE;
    a->reserved = claim(a->reserved_bytes);
    if (a->reserved == NULL)
        return false;
    a->base = (uintptr_t)a->reserved + PAGE;
    return a->kind == MEMORY_DEVICE ? map_device(a, !world.set.integrated) : map_host(a);
}

static void discard(struct alloc *a) {
    if (a->view != NULL && a->view != (char *)a->base)
        munmap(a->view, a->mapped);
    if (a->agreed != NULL)
        munmap(a->agreed, a->mapped);
    if (a->reserved != NULL)
        retire(a->reserved, a->reserved_bytes);
    if (a->fd >= 0)
        close(a->fd);
    free(a);
}

static int allocate(void **out, size_t n, enum memory kind, unsigned flags, bool stale) {
    if (out == NULL)
        return hipErrorInvalidValue;
    *out = NULL;
    if (n == 0)
        return hipSuccess;
    int device = current_device();
    struct device *d = &world.devices[device];
    if (kind == MEMORY_DEVICE && n > ((uint64_t)world.set.memory_mb << 20) - d->used)
        return hipErrorOutOfMemory;
    struct alloc *a = calloc(1, sizeof *a);
    if (a == NULL)
        return hipErrorOutOfMemory;
    *a = (struct alloc){.size = n, .kind = kind, .device = device, .flags = flags, .fd = -1};
    if (!map(a) || (stale && !map_stale(a)) || registry_add(a) != hipSuccess) {
        discard(a);
        return hipErrorOutOfMemory;
    }
    if (world.set.dirty) {
        memset(a->view, POISON, n);
        memset(stale ? (char *)a->base : a->view, POISON, n);
        memset(stale ? a->agreed : a->view, POISON, n);
    }
    if (stale)
        stale_add(a);
    d->used += kind == MEMORY_DEVICE ? n : 0;
    *out = (void *)a->base;
    return hipSuccess;
}

// begin locks the world for a call that a capture in Global mode forbids.
static int begin(void) {
    int code = device_error(current_device());
    pthread_mutex_lock(&world_lock);
    return code != hipSuccess ? code : capture_forbids();
}

// begin_release is begin for a call that gives back, which works on a failed device too, and then tells of the failure.
static int begin_release(void) {
    pthread_mutex_lock(&world_lock);
    return capture_forbids();
}

static int end(int code) {
    pthread_mutex_unlock(&world_lock);
    return call_leave(code);
}

API(hipMalloc)(void **out, size_t n) {
    CALL(hipMalloc);
    int code = begin();
    return end(code != hipSuccess ? code : allocate(out, n, MEMORY_DEVICE, 0, false));
}

API(hipExtMallocWithFlags)(void **out, size_t n, unsigned flags) {
    CALL(hipExtMallocWithFlags);
    int code = begin();
    if (code == hipSuccess && (flags > EXT_CONTIGUOUS || (flags == EXT_SIGNAL && n != 8)))
        code = hipErrorInvalidValue;
    return end(code != hipSuccess ? code : allocate(out, n, MEMORY_DEVICE, flags, false));
}

API(hipHostMalloc)(void **out, size_t n, unsigned flags) {
    CALL(hipHostMalloc);
    int code = begin();
    unsigned known = HOST_PORTABLE | HOST_MAPPED | HOST_WRITE_COMBINED | HOST_UNCACHED | HOST_NUMA_USER | HOST_COHERENT | HOST_NON_COHERENT;
    if (code == hipSuccess && ((flags & ~known) != 0 || ((flags & HOST_COHERENT) && (flags & HOST_NON_COHERENT))))
        code = hipErrorInvalidValue;
    bool coherent = flags == 0 || (flags & (HOST_MAPPED | HOST_COHERENT | HOST_NUMA_USER)) != 0 || world.set.host_coherent;
    return end(code != hipSuccess ? code : allocate(out, n, MEMORY_HOST, flags, !coherent || (flags & HOST_NON_COHERENT)));
}

// release frees an allocation as HIP does: once everything queued on its device has ended.
static int release(void *p, bool host) {
    int code = begin_release();
    if (code != hipSuccess || p == NULL)
        return end(code);
    struct alloc *a = alloc_find((uintptr_t)p);
    if (a == NULL || a->base != (uintptr_t)p || a->kind == MEMORY_REGISTERED || (host && a->kind != MEMORY_HOST)) {
        uint64_t number;
        if (a == NULL && device_error(current_device()) == hipSuccess && was_freed((uintptr_t)p, &number))
            report("allocation %llu at %p was freed twice", (unsigned long long)number, p);
        return end(hipErrorInvalidValue);
    }
    int uses = atomic_load(&a->uses);
    if (uses > 0)
        report("allocation %llu at %p (%zu bytes) was freed while %d queued operations use it", (unsigned long long)a->number, p, a->size, uses);
    registry_remove(a);
    if (a->kind == MEMORY_DEVICE)
        world.devices[a->device].used -= a->size;
    pthread_mutex_unlock(&world_lock);
    for (int d = 0; d < world.set.visibles; d++)
        if (a->kind == MEMORY_HOST || d == a->device || uses > 0)
            drain_device(d);
    if (a->stale)
        stale_remove(a);
    pthread_mutex_lock(&world_lock);
    if (atomic_load(&world.ending)) // what used it may not be over: the world's end frees it
        registry_add(a);
    else
        unmap(a);
    return end(device_error(current_device()));
}

API(hipFree)(void *p) {
    CALL(hipFree);
    return release(p, false);
}

API(hipHostFree)(void *p) {
    CALL(hipHostFree);
    return release(p, true);
}

API(hipHostRegister)(void *p, size_t n, unsigned flags) {
    CALL(hipHostRegister);
    int code = begin();
    if (code == hipSuccess && (p == NULL || n == 0 || flags > 15))
        code = hipErrorInvalidValue;
    if (code != hipSuccess)
        return end(code);
    int i = above((uintptr_t)p + n - 1);
    if (i > 0 && world.allocs[i - 1]->base + world.allocs[i - 1]->size > (uintptr_t)p)
        return end(hipErrorHostMemoryAlreadyRegistered);
    struct alloc *a = calloc(1, sizeof *a);
    if (a == NULL)
        return end(hipErrorOutOfMemory);
    *a = (struct alloc){.base = (uintptr_t)p, .size = n, .view = p, .kind = MEMORY_REGISTERED, .device = current_device(), .flags = flags, .fd = -1};
    code = registry_add(a);
    if (code != hipSuccess)
        free(a);
    return end(code);
}

API(hipHostUnregister)(void *p) {
    CALL(hipHostUnregister);
    int code = begin_release();
    if (code != hipSuccess)
        return end(code);
    struct alloc *a = alloc_find((uintptr_t)p);
    if (a == NULL || a->base != (uintptr_t)p || a->kind != MEMORY_REGISTERED)
        return end(hipErrorHostMemoryNotRegistered);
    if (atomic_load(&a->uses) > 0)
        report("registered memory at %p was unregistered while queued operations use it", p);
    registry_remove(a);
    pthread_mutex_unlock(&world_lock);
    for (int d = 0; d < world.set.visibles; d++)
        drain_device(d);
    pthread_mutex_lock(&world_lock);
    if (atomic_load(&world.ending)) {
        registry_add(a);
    } else {
        forget_unseen(a->view, a->size);
        free(a);
    }
    return end(device_error(current_device()));
}
