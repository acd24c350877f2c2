//go:build cgo && linux

// Streams: each is bound at creation to one hardware queue, which it shares with others of its pool.
#include <stdlib.h>

#include "world.h"

// stream_queue gives the least shared queue of a pool, or a new one while there are fewer than GPU_MAX_HW_QUEUES.
struct engine *stream_queue(int device, int priority) {
    if (world.set.ignore_priority)
        priority = 0;
    struct engine **pool = world.devices[device].pool[priority + 1], *least = NULL;
    for (int i = 0; i < world.set.hw_queues; i++) {
        if (pool[i] == NULL)
            pool[i] = engine_new(device, priority, false);
        if (pool[i] == NULL || pool[i]->streams == 0)
            return pool[i] != NULL ? pool[i] : least;
        if (least == NULL || pool[i]->streams < least->streams)
            least = pool[i];
    }
    return least;
}

// own_queue gives a queue that no other stream has; one that a destroyed stream left serves again.
static struct engine *own_queue(int device) {
    for (int i = 0; i < world.engine_count; i++) {
        struct engine *e = world.engines[i];
        if (e->masked && e->streams == 0 && e->device == device && atomic_load(&e->completed) == atomic_load(&e->submitted))
            return e;
    }
    struct engine *e = engine_new(device, 0, false);
    if (e != NULL)
        e->masked = true;
    return e;
}

static struct stream *stream_new(int device, unsigned flags, int priority, struct engine *on) {
    struct stream *s = on == NULL ? NULL : pool_new(&world.streams);
    if (s == NULL)
        return NULL;
    s->device = device;
    s->flags = flags;
    s->priority = priority;
    s->queue = on;
    on->streams++;
    pthread_mutex_init(&s->exec, NULL);
    return s;
}

static struct stream *resolve(void *handle) {
    if ((uintptr_t)handle > 2)
        return pool_has(&world.streams, handle) && !((struct stream *)handle)->closing ? handle : NULL;
    struct device *d = &world.devices[current_device()];
    if (d->null == NULL) {
        d->null = stream_new(current_device(), STREAM_DEFAULT, 0, stream_queue(current_device(), 0));
        if (d->null != NULL)
            d->null->null = true;
    }
    return d->null;
}

// stream_enter locks the world for a call on a live stream whose queue has room; unless it returns an error.
int stream_enter(void *handle, struct stream **out) {
    for (;;) {
        pthread_mutex_lock(&world_lock);
        struct stream *s = resolve(handle);
        if (s == NULL) {
            pthread_mutex_unlock(&world_lock);
            return hipErrorContextIsDestroyed;
        }
        int code = device_error(s->device);
        if (code != hipSuccess) {
            pthread_mutex_unlock(&world_lock);
            return code;
        }
        struct engine *e = s->queue;
        if (atomic_load(&e->submitted) - atomic_load(&e->completed) >= QUEUE_LIMIT) {
            struct point room = {e, atomic_load(&e->completed) + 1};
            pthread_mutex_unlock(&world_lock);
            point_wait(room, NULL);
            continue;
        }
        *out = s;
        if (!world.set.stream_lock)
            return hipSuccess;
        pthread_mutex_unlock(&world_lock);
        pthread_mutex_lock(&s->exec);
        pthread_mutex_lock(&world_lock);
        if (resolve(handle) == s)
            return hipSuccess;
        pthread_mutex_unlock(&world_lock);
        pthread_mutex_unlock(&s->exec);
    }
}

int stream_unlock(struct stream *s, int code) {
    pthread_mutex_unlock(&world_lock);
    if (world.set.stream_lock)
        pthread_mutex_unlock(&s->exec);
    return call_leave(code);
}

// records says that an operation of this kind joins the graph instead of a queue.
static bool records(const struct stream *s, enum kind kind) {
    bool value = kind == OP_WAIT || kind == OP_WRITE;
    return s->capture != NULL && !(value && world.set.capture_values == VALUES_RUN);
}

struct op *stream_op(struct stream *s, struct engine *on, enum kind kind, enum call call) {
    struct op *o = records(s, kind) ? capture_op() : op_new(on);
    if (o == NULL)
        return NULL;
    o->kind = kind;
    o->call = call;
    o->stream = s;
    o->device = s->device;
    o->null_stream = s->null;
    return o;
}

void stream_submit(struct stream *s, struct engine *on, struct op *o) {
    if (records(s, o->kind)) {
        capture_add(s, o);
        return;
    }
    if (s->last.engine != on && !point_met(s->last))
        o->after[0] = s->last;
    s->last = engine_submit(on, o);
}

void stream_discard(struct stream *s, struct engine *on, struct op *o) {
    if (records(s, o->kind))
        graph_drop(o);
    else
        op_free(on, o);
}

// stream_begin is stream_enter for a call that queues work.
int stream_begin(void *handle, struct stream **s) {
    int code = stream_enter(handle, s);
    if (code != hipSuccess)
        return code;
    if (capture_implicit(*s))
        code = hipErrorStreamCaptureImplicit;
    else if ((*s)->capture != NULL && (*s)->capture->status == CAPTURE_INVALIDATED)
        code = hipErrorStreamCaptureInvalidated;
    if (code != hipSuccess)
        stream_unlock(*s, code);
    return code;
}

static int create(void **out, unsigned flags, int priority, bool masked) {
    if (out == NULL || flags > STREAM_NON_BLOCKING)
        return call_leave(hipErrorInvalidValue);
    int device = current_device();
    int code = device_error(device);
    if (code != hipSuccess)
        return call_leave(code);
    priority = priority < -1 ? -1 : priority > 1 ? 1 : priority;
    pthread_mutex_lock(&world_lock);
    *out = stream_new(device, flags, priority, masked ? own_queue(device) : stream_queue(device, priority));
    if (*out != NULL)
        ((struct stream *)*out)->masked = masked;
    pthread_mutex_unlock(&world_lock);
    return call_leave(*out == NULL ? hipErrorOutOfMemory : hipSuccess);
}

API(hipStreamCreate)(void **out) {
    CALL(hipStreamCreate);
    return create(out, STREAM_DEFAULT, 0, false);
}

API(hipStreamCreateWithFlags)(void **out, unsigned flags) {
    CALL(hipStreamCreateWithFlags);
    return create(out, flags, 0, false);
}

API(hipStreamCreateWithPriority)(void **out, unsigned flags, int priority) {
    CALL(hipStreamCreateWithPriority);
    return create(out, flags, priority, false);
}

API(hipExtStreamCreateWithCUMask)(void **out, uint32_t words, const uint32_t *mask) {
    CALL(hipExtStreamCreateWithCUMask);
    uint32_t any = 0;
    for (uint32_t i = 0; mask != NULL && i < words; i++)
        any |= mask[i];
    if (any == 0)
        return call_leave(hipErrorInvalidValue);
    return create(out, STREAM_DEFAULT, 0, true);
}

API(hipStreamDestroy)(void *handle) {
    CALL(hipStreamDestroy);
    if ((uintptr_t)handle <= 2)
        return call_leave(hipErrorInvalidHandle);
    struct stream *s;
    int code = stream_enter(handle, &s);
    if (code == hipErrorContextIsDestroyed)
        return call_leave(code);
    if (code != hipSuccess) { // a failed device's streams can still be destroyed
        pthread_mutex_lock(&world_lock);
        s = resolve(handle);
        if (s == NULL) {
            pthread_mutex_unlock(&world_lock);
            return call_leave(hipErrorContextIsDestroyed);
        }
    } else if (world.set.stream_lock) {
        pthread_mutex_unlock(&s->exec);
    }
    struct point last = s->last;
    capture_leave(s);
    s->closing = true; // no further call finds it
    pthread_mutex_unlock(&world_lock);
    point_wait(last, NULL);
    pthread_mutex_lock(&world_lock);
    s->queue->streams--;
    pool_free(&world.streams, s);
    pthread_mutex_destroy(&s->exec);
    pthread_mutex_unlock(&world_lock);
    return call_leave(code);
}

static bool capturing(const struct stream *s) { return s->capture != NULL; }

API(hipStreamQuery)(void *handle) {
    CALL(hipStreamQuery);
    struct stream *s;
    int code = stream_enter(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    code = capturing(s) ? hipErrorStreamCaptureUnsupported : point_met(s->last) ? hipSuccess : hipErrorNotReady;
    if (code == hipSuccess)
        release_stale();
    if (code == hipSuccess)
        code = device_error(s->device);
    int told = stream_unlock(s, code == hipErrorNotReady ? hipSuccess : code); // not ready is not an error to remember
    return code == hipErrorNotReady ? code : told;
}

API(hipStreamSynchronize)(void *handle) {
    CALL(hipStreamSynchronize);
    struct stream *s;
    int code = stream_enter(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    if (capturing(s) || capture_implicit(s))
        return stream_unlock(s, capturing(s) ? hipErrorStreamCaptureUnsupported : hipErrorStreamCaptureImplicit);
    struct point last = s->last;
    int device = s->device;
    bool locked = world.set.stream_lock;
    pthread_mutex_unlock(&world_lock);
    point_wait(last, NULL);
    if (locked)
        pthread_mutex_unlock(&s->exec);
    release_stale();
    return call_leave(device_error(device));
}

API(hipStreamGetFlags)(void *handle, unsigned *flags) {
    CALL(hipStreamGetFlags);
    struct stream *s;
    int code = flags == NULL ? hipErrorInvalidValue : stream_enter(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    *flags = s->flags;
    return stream_unlock(s, hipSuccess);
}

API(hipStreamGetPriority)(void *handle, int *priority) {
    CALL(hipStreamGetPriority);
    struct stream *s;
    int code = priority == NULL ? hipErrorInvalidValue : stream_enter(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    *priority = s->priority;
    return stream_unlock(s, hipSuccess);
}

// drain_device waits until every operation queued so far on a device has ended.
int drain_device(int device) {
    struct point *points = NULL;
    int count = 0;
    pthread_mutex_lock(&world_lock);
    points = calloc((size_t)world.engine_count + 1, sizeof *points);
    for (int i = 0; i < world.engine_count && points != NULL; i++)
        if (world.engines[i]->device == device)
            points[count++] = (struct point){world.engines[i], atomic_load(&world.engines[i]->submitted)};
    pthread_mutex_unlock(&world_lock);
    for (int i = 0; i < count; i++)
        point_wait(points[i], NULL);
    free(points);
    release_stale();
    return device_error(device);
}

API(hipDeviceSynchronize)(void) {
    CALL(hipDeviceSynchronize);
    pthread_mutex_lock(&world_lock);
    int code = capture_forbids();
    pthread_mutex_unlock(&world_lock);
    return call_leave(code != hipSuccess ? code : drain_device(current_device()));
}

API(hipLaunchHostFunc)(void *handle, void (*fn)(void *), void *arg) {
    CALL(hipLaunchHostFunc);
    struct stream *s;
    int code = fn == NULL ? hipErrorInvalidValue : stream_begin(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    struct op *o = stream_op(s, s->queue, OP_HOST, CALL_hipLaunchHostFunc);
    if (o == NULL)
        return stream_unlock(s, hipErrorOutOfMemory);
    o->fn = fn;
    o->fn_arg = arg;
    stream_submit(s, s->queue, o);
    return stream_unlock(s, hipSuccess);
}
