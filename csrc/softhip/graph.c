//go:build cgo && linux

// Graphs: what a capture recorded, in the order in which it was recorded, which keeps every dependency.
#include <stdlib.h>
#include <string.h>

#include "world.h"

void graph_drop(struct op *first) {
    for (struct op *o = first, *next; o != NULL; o = next) {
        next = o->next;
        unuse(o);
        if (o->args != NULL && o->args != o->inline_args)
            free(o->args);
        free(o);
    }
}

void graph_free(struct graph *g) {
    graph_drop(g->first);
    pool_free(&world.graphs, g);
}

// graphs_end frees what no call has.
void graphs_end(void) {
    for (unsigned i = 0; i < world.graphs.high; i++) {
        struct graph *g = (struct graph *)(void *)(world.graphs.at + world.graphs.size * i);
        if (g->live)
            graph_drop(g->first);
    }
    for (unsigned i = 0; i < world.execs.high; i++) {
        struct exec *x = (struct exec *)(void *)(world.execs.at + world.execs.size * i);
        if (x->live)
            graph_drop(x->first);
    }
}

// fill copies a recorded operation into o, but for what its queue decides.
static bool fill(struct op *o, const struct op *from) {
    o->kind = from->kind;
    o->call = from->call;
    o->dst = from->dst;
    o->src = from->src;
    o->bytes = from->bytes;
    o->value = from->value;
    o->mask = from->mask;
    o->flags = from->flags;
    o->width = from->width;
    o->twin = from->twin;
    o->kernel = from->kernel;
    o->blocks = from->blocks;
    o->threads = from->threads;
    o->fn = from->fn;
    o->fn_arg = from->fn_arg;
    return from->args == NULL || op_args(o, from->args, from->arg_bytes);
}

static int copy_list(struct op **first, const struct op *from) {
    struct op *list = NULL, **end = &list;
    for (; from != NULL; from = from->next) {
        struct op *o = capture_op();
        if (o == NULL || !fill(o, from)) {
            free(o);
            graph_drop(list);
            return hipErrorOutOfMemory;
        }
        *end = o;
        end = &o->next;
    }
    *first = list;
    return hipSuccess;
}

static int instantiate(void **out, void *handle) {
    if (out == NULL)
        return call_leave(hipErrorInvalidValue);
    pthread_mutex_lock(&world_lock);
    struct graph *g = handle;
    struct exec *x = NULL;
    int code = hipErrorInvalidValue;
    if (pool_has(&world.graphs, handle)) {
        x = pool_new(&world.execs);
        code = x == NULL ? hipErrorOutOfMemory : copy_list(&x->first, g->first);
        if (code != hipSuccess && x != NULL)
            pool_free(&world.execs, x);
    }
    pthread_mutex_unlock(&world_lock);
    if (code == hipSuccess)
        *out = x;
    return call_leave(code);
}

API(hipGraphInstantiate)(void **out, void *graph, void **node, char *log, size_t n) {
    CALL(hipGraphInstantiate);
    (void)node;
    if (log != NULL && n > 0)
        *log = 0;
    return instantiate(out, graph);
}

API(hipGraphInstantiateWithFlags)(void **out, void *graph, unsigned long long flags) {
    CALL(hipGraphInstantiateWithFlags);
    return flags != 0 ? call_leave(hipErrorInvalidValue) : instantiate(out, graph);
}

API(hipGraphDestroy)(void *handle) {
    CALL(hipGraphDestroy);
    pthread_mutex_lock(&world_lock);
    bool live = pool_has(&world.graphs, handle);
    if (live)
        graph_free(handle);
    pthread_mutex_unlock(&world_lock);
    return call_leave(live ? hipSuccess : hipErrorInvalidValue);
}

API(hipGraphExecDestroy)(void *handle) {
    CALL(hipGraphExecDestroy);
    pthread_mutex_lock(&world_lock);
    bool live = pool_has(&world.execs, handle);
    if (live) {
        graph_drop(((struct exec *)handle)->first);
        pool_free(&world.execs, handle);
    }
    pthread_mutex_unlock(&world_lock);
    return call_leave(live ? hipSuccess : hipErrorInvalidValue);
}

// replay queues one recorded operation again, with today's allocations.
static int replay(struct stream *s, const struct op *from) {
    struct op plan = {.kind = from->kind, .dst = from->dst, .src = from->src, .bytes = from->bytes};
    struct engine *on = s->queue;
    int code = from->kind == OP_COPY ? copy_engine(s, &plan, &on) : hipSuccess;
    if (code != hipSuccess)
        return code;
    struct op *o = stream_op(s, on, from->kind, from->call);
    if (o == NULL)
        return hipErrorOutOfMemory;
    if (!fill(o, from))
        code = hipErrorOutOfMemory;
    else if (s->capture == NULL)
        code = op_bind(o);
    if (code != hipSuccess)
        stream_discard(s, on, o);
    else
        stream_submit(s, on, o);
    return code;
}

API(hipGraphLaunch)(void *handle, void *stream) {
    CALL(hipGraphLaunch);
    struct stream *s;
    int code = stream_begin(stream, &s);
    if (code != hipSuccess)
        return call_leave(code);
    if (!pool_has(&world.execs, handle))
        return stream_unlock(s, hipErrorInvalidValue);
    for (const struct op *o = ((struct exec *)handle)->first; o != NULL && code == hipSuccess; o = o->next)
        code = replay(s, o);
    return stream_unlock(s, code);
}
