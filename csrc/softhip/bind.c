//go:build cgo && linux

// From the addresses that a caller named to those that a worker touches.
#include <stdlib.h>
#include <string.h>

#include "world.h"

// region finds the allocation that holds [p, p+n); NULL where p belongs to none.
static int region(const char *p, size_t n, struct alloc **found) {
    uint64_t number;
    struct alloc *a = alloc_find((uintptr_t)p);
    *found = a;
    if (a == NULL) {
        if (p == NULL)
            return hipErrorInvalidValue;
        if (!was_freed((uintptr_t)p, &number))
            return hipSuccess;
        report("an operation was queued on %p, in allocation %llu, which was freed", (const void *)p, (unsigned long long)number);
        return hipErrorInvalidValue;
    }
    return n > a->size - ((uintptr_t)p - a->base) ? hipErrorInvalidValue : hipSuccess;
}

static char *touch(struct op *o, struct alloc *a, char *p) {
    if (a == NULL)
        return p;
    use(o, a);
    return o->sdma && a->stale ? p : alloc_view(a, (uintptr_t)p);
}

// copy_plan finds both sides of a copy, and whether an SDMA ring will run it.
static int copy_plan(struct op *o, struct alloc **to, struct alloc **from) {
    int code = region(o->dst, o->bytes, to);
    if (code == hipSuccess)
        code = region(o->src, o->bytes, from);
    if (code != hipSuccess)
        return code;
    bool to_device = *to != NULL && (*to)->kind == MEMORY_DEVICE, from_device = *from != NULL && (*from)->kind == MEMORY_DEVICE;
    o->pageable = *to == NULL || *from == NULL;
    o->sdma = o->bytes > (size_t)world.set.blit_bytes && !(to_device && from_device);
    return hipSuccess;
}

// copy_engine says where a copy runs: the stream's own queue, or a ring that all streams of the device share.
int copy_engine(struct stream *s, struct op *o, struct engine **on) {
    struct alloc *to, *from;
    int code = copy_plan(o, &to, &from);
    if (code != hipSuccess || !o->sdma) {
        *on = s->queue;
        return code;
    }
    *on = ring_of(s->device, to == NULL || to->kind != MEMORY_DEVICE);
    return *on == NULL ? hipErrorOutOfMemory : hipSuccess;
}

struct engine *ring_of(int device, int index) {
    struct engine **ring = &world.devices[device].rings[index % world.set.sdma_rings];
    if (*ring == NULL)
        *ring = engine_new(device, 0, true);
    return *ring;
}

// bind_args replaces each device address in a kernel's arguments by its view.
static void bind_args(struct op *o) {
    uint64_t *words = o->args;
    for (size_t i = 0; i < o->arg_bytes / 8; i++) {
        struct alloc *a = alloc_find((uintptr_t)words[i]);
        if (a == NULL || a->kind == MEMORY_REGISTERED)
            continue;
        use(o, a);
        words[i] = (uint64_t)(uintptr_t)alloc_view(a, (uintptr_t)words[i]);
    }
}

// bind resolves an operation's addresses. World locked.
int op_bind(struct op *o) {
    struct alloc *to, *from;
    int code;
    switch (o->kind) {
    case OP_COPY:
        code = copy_plan(o, &to, &from);
        if (code == hipSuccess) {
            o->to = touch(o, to, o->dst);
            o->from = touch(o, from, o->src);
        }
        return code;
    case OP_SET:
    case OP_WAIT:
    case OP_WRITE:
        code = region(o->dst, o->bytes, &to);
        if (code == hipSuccess && to == NULL)
            code = hipErrorInvalidValue;
        if (code == hipSuccess)
            o->to = touch(o, to, o->dst);
        return code;
    case OP_KERNEL: bind_args(o); return hipSuccess;
    default: return hipSuccess;
    }
}

SOFTHIP_API void *softhip_view(void *p) {
    pthread_mutex_lock(&world_lock);
    struct alloc *a = alloc_find((uintptr_t)p);
    if (a != NULL)
        p = alloc_view(a, (uintptr_t)p);
    pthread_mutex_unlock(&world_lock);
    return p;
}
