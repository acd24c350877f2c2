//go:build cgo && linux

// Events.
#include <stdlib.h>

#include "world.h"

static int create(void **out, unsigned flags) {
    unsigned known = EVENT_BLOCKING | EVENT_NO_TIMING | EVENT_INTERPROCESS | EVENT_NO_FENCE | EVENT_TO_DEVICE | EVENT_TO_SYSTEM;
    if (out == NULL || (flags & ~known) != 0 || ((flags & EVENT_TO_DEVICE) && (flags & EVENT_TO_SYSTEM)))
        return call_leave(hipErrorInvalidValue);
    int code = device_error(current_device());
    if (code != hipSuccess)
        return call_leave(code);
    pthread_mutex_lock(&world_lock);
    struct event *e = pool_new(&world.events);
    if (e != NULL) {
        e->device = current_device();
        e->flags = flags;
    }
    pthread_mutex_unlock(&world_lock);
    *out = e;
    return call_leave(e == NULL ? hipErrorOutOfMemory : hipSuccess);
}

API(hipEventCreate)(void **out) {
    CALL(hipEventCreate);
    return create(out, 0);
}

API(hipEventCreateWithFlags)(void **out, unsigned flags) {
    CALL(hipEventCreateWithFlags);
    return create(out, flags);
}

static void drop_timing(struct event *e) {
    if (e->timing != NULL && atomic_fetch_sub(&e->timing->holders, 1) == 1)
        free(e->timing);
    e->timing = NULL;
}

API(hipEventDestroy)(void *handle) {
    CALL(hipEventDestroy);
    pthread_mutex_lock(&world_lock);
    bool live = pool_has(&world.events, handle);
    if (live) {
        drop_timing(handle);
        pool_free(&world.events, handle);
    }
    pthread_mutex_unlock(&world_lock);
    return call_leave(live ? hipSuccess : hipErrorInvalidHandle);
}

API(hipEventRecord)(void *handle, void *stream) {
    CALL(hipEventRecord);
    struct stream *s;
    int code = stream_begin(stream, &s);
    if (code != hipSuccess)
        return call_leave(code);
    struct event *e = handle;
    if (!pool_has(&world.events, handle) || e->device != s->device)
        return stream_unlock(s, hipErrorInvalidHandle);
    if (s->capture != NULL) {
        e->capture_number = s->capture->number;
        e->from = s;
        return stream_unlock(s, hipSuccess);
    }
    struct op *o = stream_op(s, s->queue, OP_MARK, CALL_hipEventRecord);
    struct timing *t = (e->flags & EVENT_NO_TIMING) ? NULL : calloc(1, sizeof *t);
    if (o == NULL || (t == NULL && !(e->flags & EVENT_NO_TIMING))) {
        if (o != NULL)
            stream_discard(s, s->queue, o);
        return stream_unlock(s, hipErrorOutOfMemory);
    }
    drop_timing(e);
    if (t != NULL)
        atomic_store(&t->holders, 2);
    e->timing = o->timing = t;
    o->flags = e->flags;
    o->value = (uint64_t)(uintptr_t)e;
    stream_submit(s, s->queue, o);
    e->at = s->last;
    e->recorded = true;
    e->capture_number = 0;
    return stream_unlock(s, hipSuccess);
}

// look copies what an event waits for.
static int look(void *handle, struct event *copy) {
    pthread_mutex_lock(&world_lock);
    int code = hipErrorInvalidHandle;
    if (pool_has(&world.events, handle)) {
        *copy = *(struct event *)handle;
        code = copy->capture_number != 0 ? hipErrorCapturedEvent : device_error(copy->device);
    }
    pthread_mutex_unlock(&world_lock);
    return code;
}

API(hipEventQuery)(void *handle) {
    CALL(hipEventQuery);
    struct event e;
    int code = look(handle, &e);
    if (code == hipSuccess && e.recorded && !point_met(e.at))
        code = hipErrorNotReady;
    if (code == hipSuccess)
        code = device_error(e.device);
    return code == hipErrorNotReady ? code : call_leave(code);
}

API(hipEventSynchronize)(void *handle) {
    CALL(hipEventSynchronize);
    struct event e;
    int code = look(handle, &e);
    if (code != hipSuccess)
        return call_leave(code);
    if (e.recorded)
        point_wait(e.at, NULL);
    return call_leave(device_error(e.device));
}

API(hipEventElapsedTime)(float *ms, void *from, void *to) {
    CALL(hipEventElapsedTime);
    if (ms == NULL)
        return call_leave(hipErrorInvalidValue);
    pthread_mutex_lock(&world_lock);
    struct event *a = from, *b = to;
    int code = hipSuccess;
    if (!pool_has(&world.events, a) || !pool_has(&world.events, b) || a->timing == NULL || b->timing == NULL)
        code = hipErrorInvalidHandle;
    else if (!point_met(a->at) || !point_met(b->at))
        code = hipErrorNotReady;
    else
        *ms = (float)((double)(int64_t)(atomic_load(&b->timing->at_ns) - atomic_load(&a->timing->at_ns)) / 1e6);
    pthread_mutex_unlock(&world_lock);
    return call_leave(code);
}

API(hipStreamWaitEvent)(void *stream, void *handle, unsigned flags) {
    CALL(hipStreamWaitEvent);
    struct stream *s;
    int code = flags != 0 ? hipErrorInvalidValue : stream_begin(stream, &s);
    if (code != hipSuccess)
        return call_leave(code);
    struct event *e = handle;
    if (!pool_has(&world.events, handle))
        return stream_unlock(s, hipErrorInvalidHandle);
    if (e->capture_number != 0 || s->capture != NULL)
        return stream_unlock(s, capture_join(s, e));
    if (!e->recorded || point_met(e->at))
        return stream_unlock(s, hipSuccess);
    struct op *o = stream_op(s, s->queue, OP_MARK, CALL_hipStreamWaitEvent);
    if (o == NULL)
        return stream_unlock(s, hipErrorOutOfMemory);
    o->after[1] = e->at;
    o->flags = EVENT_TO_DEVICE;
    o->value = (uint64_t)(uintptr_t)e;
    stream_submit(s, s->queue, o);
    return stream_unlock(s, hipSuccess);
}
