//go:build cgo && linux

// Stream capture: operations join a graph instead of a queue, and what HIP forbids meanwhile.
#include <stdlib.h>
#include <string.h>

#include "world.h"

// CAPTURE_GLOBAL unless exchanged in this world.
static _Thread_local struct {
    uint64_t generation;
    int mode;
} here;

static int *thread_mode(void) {
    if (here.generation != world.generation) {
        here.generation = world.generation;
        here.mode = CAPTURE_GLOBAL;
    }
    return &here.mode;
}

static struct capture *by_number(uint64_t number) {
    for (size_t i = 0; i < sizeof world.captures / sizeof *world.captures; i++)
        if (world.captures[i] != NULL && world.captures[i]->number == number)
            return world.captures[i];
    return NULL;
}

struct op *capture_op(void) {
    struct op *o = aligned_alloc(64, (sizeof *o + 63) & ~(size_t)63);
    if (o != NULL)
        memset(o, 0, sizeof *o);
    return o;
}

void capture_add(struct stream *s, struct op *o) {
    struct graph *g = s->capture->graph;
    unuse(o);
    o->next = NULL;
    if (g->last == NULL)
        g->first = o;
    else
        g->last->next = o;
    g->last = o;
    g->count++;
    s->pending++;
}

// capture_forbids says whether a capture forbids this thread a call that synchronises or allocates; if so the capture is lost.
int capture_forbids(void) {
    if (atomic_load(&world.capturing) == 0 || *thread_mode() == CAPTURE_RELAXED)
        return hipSuccess;
    int code = hipSuccess;
    for (size_t i = 0; i < sizeof world.captures / sizeof *world.captures; i++) {
        struct capture *c = world.captures[i];
        if (c == NULL || c->mode == CAPTURE_RELAXED || c->status != CAPTURE_ACTIVE)
            continue;
        bool own = c->thread == thread_number();
        if (own || (c->mode == CAPTURE_GLOBAL && *thread_mode() == CAPTURE_GLOBAL)) {
            c->status = CAPTURE_INVALIDATED;
            code = hipErrorStreamCaptureUnsupported;
        }
    }
    return code;
}

// capture_implicit says that work on the null stream would order itself against a capture of a blocking stream.
bool capture_implicit(const struct stream *s) {
    if (!s->null || atomic_load(&world.capturing) == 0)
        return false;
    bool lost = false;
    for (size_t i = 0; i < sizeof world.captures / sizeof *world.captures; i++) {
        struct capture *c = world.captures[i];
        if (c == NULL || c->origin->device != s->device || (c->origin->flags & STREAM_NON_BLOCKING))
            continue;
        c->status = CAPTURE_INVALIDATED;
        lost = true;
    }
    return lost;
}

// capture_join is hipStreamWaitEvent where the stream captures or the event was recorded by one that does.
int capture_join(struct stream *s, struct event *e) {
    struct capture *c = by_number(e->capture_number);
    if (c == NULL && e->capture_number != 0)
        return s->capture == NULL ? hipErrorCapturedEvent : hipErrorStreamCaptureIsolation; // of a capture that has ended
    if (c == NULL) {
        if (!e->recorded)
            return hipSuccess;
        s->capture->status = CAPTURE_INVALIDATED;
        return hipErrorStreamCaptureIsolation;
    }
    if (s->capture != NULL && s->capture != c) {
        s->capture->status = c->status = CAPTURE_INVALIDATED;
        return hipErrorStreamCaptureMerge;
    }
    if (s->null)
        return hipErrorStreamCaptureImplicit;
    if (s->capture == NULL) {
        s->capture = c;
        s->pending = 1; // even an empty branch must be joined again
    }
    if (e->from != s && pool_has(&world.streams, e->from))
        e->from->pending = 0;
    if (s != c->origin)
        s->pending++;
    return hipSuccess;
}

static void leave_all(struct capture *c) {
    for (unsigned i = 0; i < world.streams.high; i++) {
        struct stream *s = (struct stream *)(void *)(world.streams.at + world.streams.size * i);
        if (s->live && s->capture == c)
            s->capture = NULL;
    }
    for (size_t i = 0; i < sizeof world.captures / sizeof *world.captures; i++)
        if (world.captures[i] == c)
            world.captures[i] = NULL;
    atomic_fetch_sub(&world.capturing, 1);
}

// capture_leave is the end of a stream in the middle of a capture: the capture is lost.
void capture_leave(struct stream *s) {
    struct capture *c = s->capture;
    if (c == NULL)
        return;
    c->status = CAPTURE_INVALIDATED;
    s->capture = NULL;
    if (c->origin != s)
        return;
    leave_all(c);
    graph_free(c->graph);
    free(c);
}

void captures_end(void) {
    for (size_t i = 0; i < sizeof world.captures / sizeof *world.captures; i++)
        free(world.captures[i]);
}

API(hipStreamBeginCapture)(void *handle, int mode) {
    CALL(hipStreamBeginCapture);
    struct stream *s;
    int code = mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED ? hipErrorInvalidValue : stream_enter(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    if (s->null)
        return stream_unlock(s, hipErrorStreamCaptureUnsupported);
    if (s->capture != NULL)
        return stream_unlock(s, hipErrorIllegalState);
    size_t slot = 0, slots = sizeof world.captures / sizeof *world.captures;
    while (slot < slots && world.captures[slot] != NULL)
        slot++;
    struct capture *c = slot == slots ? NULL : calloc(1, sizeof *c);
    struct graph *g = c == NULL ? NULL : pool_new(&world.graphs);
    if (g == NULL) {
        free(c);
        return stream_unlock(s, hipErrorOutOfMemory);
    }
    *c = (struct capture){.origin = s, .mode = mode, .status = CAPTURE_ACTIVE, .thread = thread_number(), .number = ++world.next_number, .graph = g};
    world.captures[slot] = c;
    s->capture = c;
    s->pending = 0;
    atomic_fetch_add(&world.capturing, 1);
    return stream_unlock(s, hipSuccess);
}

// unjoined says that a stream which joined the capture has work that the origin never waited for.
static bool unjoined(const struct capture *c) {
    for (unsigned i = 0; i < world.streams.high; i++) {
        const struct stream *s = (const struct stream *)(const void *)(world.streams.at + world.streams.size * i);
        if (s->live && s->capture == c && s != c->origin && s->pending > 0)
            return true;
    }
    return false;
}

API(hipStreamEndCapture)(void *handle, void **out) {
    CALL(hipStreamEndCapture);
    struct stream *s;
    int code = out == NULL ? hipErrorInvalidValue : stream_enter(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    *out = NULL;
    struct capture *c = s->capture;
    if (c == NULL)
        return stream_unlock(s, hipErrorIllegalState);
    if (c->origin != s)
        return stream_unlock(s, hipErrorStreamCaptureUnmatched);
    if (c->mode != CAPTURE_RELAXED && c->thread != thread_number())
        return stream_unlock(s, hipErrorStreamCaptureWrongThread);
    if (c->status == CAPTURE_INVALIDATED)
        code = hipErrorStreamCaptureInvalidated;
    else if (unjoined(c))
        code = hipErrorStreamCaptureUnjoined;
    leave_all(c);
    if (code == hipSuccess)
        *out = c->graph;
    else
        graph_free(c->graph);
    free(c);
    return stream_unlock(s, code);
}

API(hipStreamIsCapturing)(void *handle, int *status) {
    CALL(hipStreamIsCapturing);
    struct stream *s;
    int code = status == NULL ? hipErrorInvalidValue : stream_enter(handle, &s);
    if (code != hipSuccess)
        return call_leave(code);
    if (capture_implicit(s))
        return stream_unlock(s, hipErrorStreamCaptureImplicit);
    *status = s->capture == NULL ? CAPTURE_NONE : s->capture->status;
    return stream_unlock(s, hipSuccess);
}

API(hipThreadExchangeStreamCaptureMode)(int *mode) {
    CALL(hipThreadExchangeStreamCaptureMode);
    if (mode == NULL || *mode < CAPTURE_GLOBAL || *mode > CAPTURE_RELAXED)
        return call_leave(hipErrorInvalidValue);
    int was = *thread_mode();
    *thread_mode() = *mode;
    *mode = was;
    return call_leave(hipSuccess);
}
