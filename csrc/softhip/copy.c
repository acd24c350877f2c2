//go:build cgo && linux

// Copies and sets.
#include <stdlib.h>

#include "world.h"

// behind waits, where the profile says so, until a copy would begin at once.
static int behind(void *handle, struct stream **s) {
    for (;;) {
        int code = stream_begin(handle, s);
        if (code != hipSuccess || !world.set.copy_blocks || (*s)->capture != NULL || point_met((*s)->last))
            return code;
        struct point last = (*s)->last;
        stream_unlock(*s, hipSuccess);
        point_wait(last, NULL);
    }
}

static int copy(void *dst, const void *src, size_t n, int kind, void *handle, enum call call, bool wait) {
    if (kind < COPY_HOST_TO_HOST || kind > COPY_DEFAULT)
        return call_leave(hipErrorInvalidMemcpyDirection);
    struct stream *s;
    int code = behind(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    if (n == 0)
        return stream_unlock(s, hipSuccess);
    struct op plan = {.kind = OP_COPY, .dst = dst, .src = (char *)(uintptr_t)src, .bytes = n};
    struct engine *on;
    code = copy_engine(s, &plan, &on);
    struct op *o = code == hipSuccess ? stream_op(s, on, OP_COPY, call) : NULL;
    if (o == NULL)
        return stream_unlock(s, code != hipSuccess ? code : hipErrorOutOfMemory);
    o->dst = plan.dst;
    o->src = plan.src;
    o->bytes = n;
    if (s->capture == NULL)
        op_bind(o);
    wait = (wait || plan.pageable) && s->capture == NULL;
    stream_submit(s, on, o);
    struct point last = s->last;
    int device = s->device;
    code = stream_unlock(s, hipSuccess);
    if (!wait)
        return code;
    point_wait(last, NULL);
    release_stale();
    return call_leave(device_error(device));
}

API(hipMemcpyAsync)(void *dst, const void *src, size_t n, int kind, void *stream) {
    CALL(hipMemcpyAsync);
    return copy(dst, src, n, kind, stream, CALL_hipMemcpyAsync, false);
}

API(hipMemcpy)(void *dst, const void *src, size_t n, int kind) {
    CALL(hipMemcpy);
    return copy(dst, src, n, kind, NULL, CALL_hipMemcpy, true);
}

static int set(void *dst, int value, size_t n, void *handle, enum call call, bool wait) {
    struct stream *s;
    int code = stream_begin(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    if (n == 0)
        return stream_unlock(s, hipSuccess);
    struct op *o = stream_op(s, s->queue, OP_SET, call);
    if (o == NULL)
        return stream_unlock(s, hipErrorOutOfMemory);
    o->dst = dst;
    o->bytes = n;
    o->value = (uint64_t)(unsigned char)value;
    code = op_bind(o);
    if (code != hipSuccess) {
        stream_discard(s, s->queue, o);
        return stream_unlock(s, code);
    }
    wait = wait && s->capture == NULL;
    stream_submit(s, s->queue, o);
    struct point last = s->last;
    int device = s->device;
    code = stream_unlock(s, hipSuccess);
    if (!wait)
        return code;
    point_wait(last, NULL);
    return call_leave(device_error(device));
}

API(hipMemsetAsync)(void *dst, int value, size_t n, void *stream) {
    CALL(hipMemsetAsync);
    return set(dst, value, n, stream, CALL_hipMemsetAsync, false);
}

API(hipMemset)(void *dst, int value, size_t n) {
    CALL(hipMemset);
    return set(dst, value, n, NULL, CALL_hipMemset, true);
}
