//go:build cgo && linux

// What tests read: the trace, what is parked and on what, what leaks, what was misused.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { TRACE = 8192, REPORTS = 65536 };

static struct softhip_op trace[TRACE];
static uint64_t traced;
static char reports[REPORTS];
static size_t reported;
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const call_names[] = {
#define NAME(name, since) #name,
    SOFTHIP_CALLS(NAME)
#undef NAME
};

void reports_end(void) {
    pthread_mutex_lock(&report_lock);
    traced = 0;
    reported = 0;
    reports[0] = 0;
    pthread_mutex_unlock(&report_lock);
}

void report(const char *format, ...) {
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&report_lock);
    int n = vsnprintf(reports + reported, sizeof reports - reported, format, args);
    if (n > 0 && reported + (size_t)n + 1 < sizeof reports) {
        reported += (size_t)n;
        reports[reported++] = '\n';
        reports[reported] = 0;
    }
    pthread_mutex_unlock(&report_lock);
    va_end(args);
}

void trace_add(const struct op *o, const struct engine *e, int code) {
    pthread_mutex_lock(&report_lock);
    struct softhip_op *t = &trace[traced++ % TRACE];
    *t = (struct softhip_op){
        .number = traced,
        .stream = (uint64_t)(uintptr_t)(o->null_stream ? NULL : o->stream),
        .queued_ns = o->queued_ns,
        .start_ns = o->start_ns,
        .end_ns = now_ns(),
        .address = (uint64_t)(uintptr_t)o->dst,
        .bytes = o->bytes,
        .value = o->value,
        .device = e->device,
        .queue = e->id,
        .code = code,
        .ring = e->ring,
    };
    const char *name = o->kernel != NULL ? o->kernel->name : call_names[o->call] + 3;
    size_t n = strlen(name);
    memcpy(t->name, name, n < sizeof t->name ? n : sizeof t->name - 1);
    pthread_mutex_unlock(&report_lock);
}

SOFTHIP_API int softhip_trace(softhip_op *ops, int max) {
    pthread_mutex_lock(&report_lock);
    uint64_t have = traced < TRACE ? traced : TRACE;
    uint64_t n = max < 0 ? 0 : (uint64_t)max < have ? (uint64_t)max : have;
    for (uint64_t i = 0; i < n; i++)
        ops[i] = trace[(traced - n + i) % TRACE];
    pthread_mutex_unlock(&report_lock);
    return (int)n;
}

// text is a bounded printer that counts what did not fit too.
struct text {
    char *at;
    size_t n, used;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t left = t->used < t->n ? t->n - t->used : 0;
    int n = vsnprintf(left > 0 ? t->at + t->used : NULL, left, format, args);
    va_end(args);
    t->used += n > 0 ? (size_t)n : 0;
}

SOFTHIP_API int softhip_reports(char *text, size_t n) {
    struct text t = {text, n, 0};
    pthread_mutex_lock(&report_lock);
    say(&t, "%s", reports);
    pthread_mutex_unlock(&report_lock);
    return (int)t.used;
}

static void say_where(struct text *t, const char *p) {
    struct alloc *a = alloc_find((uintptr_t)p);
    static const char *const kinds[] = {"device memory", "pinned host memory", "registered host memory"};
    if (a == NULL)
        say(t, "%p (no allocation)", (const void *)p);
    else
        say(t, "%p (%s %llu + %zu%s)", (const void *)p, kinds[a->kind], (unsigned long long)a->number, (uintptr_t)p - a->base,
            a->stale ? ", not coherent" : "");
}

static void say_wait(struct text *t, const struct op *o) {
    static const char *const conditions[] = {">=", "==", "&", "nor"};
    say(t, "waits until the %u-bit word at ", o->width * 8);
    say_where(t, o->dst);
    say(t, " %s %llu", conditions[o->flags & 3], (unsigned long long)o->value);
    if (o->mask != (o->width == 4 ? 0xffffffffu : ~(uint64_t)0))
        say(t, " under mask 0x%llx", (unsigned long long)o->mask);
    say(t, "; it is %llu", (unsigned long long)word_load(o));
}

static void say_head(struct text *t, const struct engine *e, const struct op *o) {
    say(t, "operation %llu %s", (unsigned long long)o->seq, call_names[o->call]);
    if (o->kernel != NULL)
        say(t, " %s", o->kernel->name);
    if (o->kind == OP_COPY || o->kind == OP_SET)
        say(t, " of %zu bytes", o->bytes);
    say(t, " of stream %p ", o->null_stream ? NULL : (void *)o->stream);
    switch (atomic_load(&e->state)) {
    case PARKED: say_wait(t, o); break;
    case DEPENDENT:
        for (int i = 0; i < 2; i++)
            if (!point_met(o->after[i]))
                say(t, "waits for operation %llu of %s %d", (unsigned long long)o->after[i].seq,
                    o->after[i].engine->ring ? "SDMA ring" : "queue", o->after[i].engine->id);
        break;
    case SPINNING: say(t, "is a kernel that waits"); break;
    case HUNG: say(t, "never ends"); break;
    case LATE: say(t, "is late"); break;
    case HELD: say(t, "is held"); break;
    default: say(t, "runs"); break;
    }
}

SOFTHIP_API int softhip_parked(char *text, size_t n) {
    struct text t = {text, n, 0};
    if (n > 0)
        *text = 0;
    world_begin();
    pthread_mutex_lock(&world_lock);
    for (int i = 0; i < world.engine_count; i++) {
        struct engine *e = world.engines[i];
        pthread_mutex_lock(&e->lock);
        if (e->head != NULL) {
            say(&t, "device %d %s %d", e->device, e->ring ? "SDMA ring" : e->masked ? "CU-mask queue" : "queue", e->id);
            say(&t, " (%d streams): ", e->streams);
            say_head(&t, e, e->head);
            say(&t, "; %u behind it\n", e->queued - 1);
        }
        pthread_mutex_unlock(&e->lock);
    }
    pthread_mutex_unlock(&world_lock);
    return (int)t.used;
}

SOFTHIP_API int softhip_leaks(char *text, size_t n) {
    struct text t = {text, n, 0};
    if (n > 0)
        *text = 0;
    world_begin();
    pthread_mutex_lock(&world_lock);
    for (int i = 0; i < world.alloc_count; i++) {
        const struct alloc *a = world.allocs[i];
        static const char *const kinds[] = {"device memory", "pinned host memory", "registered host memory"};
        say(&t, "%s %llu: %zu bytes at 0x%llx on device %d\n", kinds[a->kind], (unsigned long long)a->number, a->size,
            (unsigned long long)a->base, a->device);
    }
    unsigned nulls = 0;
    for (int i = 0; i < world.set.visibles; i++)
        nulls += world.devices[i].null != NULL;
    const struct { const char *name; unsigned live; } objects[] = {
        {"streams", world.streams.live - nulls}, {"events", world.events.live}, {"graphs", world.graphs.live},
        {"executable graphs", world.execs.live}, {"modules", world.modules.live},
    };
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (objects[i].live > 0)
            say(&t, "%s: %u\n", objects[i].name, objects[i].live);
    pthread_mutex_unlock(&world_lock);
    return (int)t.used;
}
