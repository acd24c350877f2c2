//go:build cgo && linux

// The world: what softhip_configure begins and softhip_reset ends. One a process, since HIP's functions take no context.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "world.h"

struct world world;
pthread_mutex_t world_lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings wanted;
static bool wanted_set;
static uint64_t generations;
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool begun;
static _Atomic bool leaving;  // from when a world begins to end until the next one has begun
static _Atomic int inside;    // calls under way, but for those within one

static _Thread_local struct {
    uint64_t generation;
    int device, error, depth;
    bool in_host_function;
} here;

static void pool_begin(struct pool *p, size_t size, unsigned cap) {
    size = (size + 63) & ~(size_t)63;
    void *at = claim(size * cap);
    if (at != NULL && mprotect(at, size * cap, PROT_READ | PROT_WRITE) != 0)
        at = NULL;
    *p = (struct pool){.at = at, .size = size, .cap = at == NULL ? 0 : cap};
}

static void pool_end(struct pool *p) {
    if (p->at != NULL)
        retire(p->at, p->size * p->cap);
    *p = (struct pool){0};
}

// Every pooled struct begins with its live flag. Places are reused as late as can be, so that a stale handle stays stale.
void *pool_new(struct pool *p) {
    for (unsigned tried = 0; tried < p->cap; tried++) {
        unsigned i = p->next;
        p->next = (p->next + 1) % p->cap;
        bool *live = (bool *)(p->at + p->size * i);
        if (*live)
            continue;
        memset(live, 0, p->size);
        *live = true;
        p->live++;
        if (i >= p->high)
            p->high = i + 1;
        return live;
    }
    return NULL;
}

void pool_free(struct pool *p, void *object) {
    *(bool *)object = false;
    p->live--;
}

bool pool_has(const struct pool *p, const void *object) {
    uintptr_t at = (uintptr_t)object - (uintptr_t)p->at;
    return p->at != NULL && (uintptr_t)object >= (uintptr_t)p->at && at < p->size * p->high && at % p->size == 0 &&
           *(const bool *)object;
}

// world_begin begins the wanted world unless one is under way.
void world_begin(void) {
    if (atomic_load_explicit(&begun, memory_order_acquire))
        return;
    pthread_mutex_lock(&begin_lock);
    if (!atomic_load(&begun)) {
        if (!wanted_set) {
            const char *text = "";
#ifdef SOFTHIP_SHARED
            const char *environment = getenv("SOFTHIP");
            text = environment == NULL ? "" : environment;
#endif
            if (settings_parse(&wanted, text) != 0) {
                fprintf(stderr, "%s; from the environment variable SOFTHIP, so there is no GPU\n", softhip_error());
                settings_parse(&wanted, "no_gpu=100");
            }
            wanted_set = true;
        }
        memset(&world, 0, sizeof world);
        pthread_mutex_init(&world.stale_lock, NULL);
        world.set = wanted;
        world.generation = ++generations;
        pool_begin(&world.streams, sizeof(struct stream), 4096);
        pool_begin(&world.events, sizeof(struct event), 65536);
        pool_begin(&world.graphs, sizeof(struct graph), 4096);
        pool_begin(&world.execs, sizeof(struct exec), 4096);
        pool_begin(&world.modules, sizeof(struct module), 1024);
        pool_begin(&world.functions, sizeof(struct function), 8192);
        atomic_store(&leaving, false);
        atomic_store_explicit(&begun, true, memory_order_release);
    }
    pthread_mutex_unlock(&begin_lock);
}

// stay keeps the world from ending until call_over; one that ends already is let end first.
static void stay(void) {
    if (here.depth++ > 0)
        return;
    for (;;) {
        world_begin();
        atomic_fetch_add(&inside, 1);
        if (!atomic_load(&leaving))
            return;
        atomic_fetch_sub(&inside, 1);
        pthread_mutex_lock(&begin_lock);
        pthread_mutex_unlock(&begin_lock);
    }
}

void call_over(const int *code) {
    (void)code;
    if (--here.depth == 0)
        atomic_fetch_sub(&inside, 1);
}

// leave waits until no call is under way: what it waits for is passed over.
static void leave(void) {
    atomic_store(&leaving, true);
    atomic_store(&world.ending, true);
    for (struct timespec turn = {0, 20000};; nanosleep(&turn, NULL)) {
        pthread_mutex_lock(&world_lock);
        for (int i = 0; i < world.engine_count; i++)
            rouse(world.engines[i]);
        pthread_mutex_unlock(&world_lock);
        changed(NULL, 0);
        if (atomic_load(&inside) == 0)
            return;
    }
}

void world_end(void) {
    pthread_mutex_lock(&begin_lock);
    if (atomic_load(&begun)) {
        leave();
        for (int i = 0; i < world.engine_count; i++)
            engine_end(world.engines[i]);
        for (int i = 0; i < world.engine_count; i++) {
            pthread_mutex_destroy(&world.engines[i]->lock);
            free(world.engines[i]);
        }
        graphs_end();
        captures_end();
        modules_end();
        memory_end();
        faults_end();
        reports_end();
        for (unsigned i = 0; i < world.events.high; i++) {
            struct event *e = (struct event *)(void *)(world.events.at + world.events.size * i);
            free(e->live ? e->timing : NULL);
        }
        pool_end(&world.streams);
        pool_end(&world.events);
        pool_end(&world.graphs);
        pool_end(&world.execs);
        pool_end(&world.modules);
        pool_end(&world.functions);
        pthread_mutex_destroy(&world.stale_lock);
        atomic_store(&begun, false);
    }
    pthread_mutex_unlock(&begin_lock);
}

// world_busy says whether an operation is queued, running or parked.
bool world_busy(void) {
    if (!atomic_load(&begun))
        return false;
    for (int i = 0; i < world.engine_count; i++)
        if (atomic_load(&world.engines[i]->submitted) != atomic_load(&world.engines[i]->completed))
            return true;
    return false;
}

SOFTHIP_API int softhip_configure(const char *settings) {
    struct settings s;
    if (settings_parse(&s, settings == NULL ? "" : settings) != 0)
        return -1;
    if (softhip_settle(1000) != 0 || world_busy())
        return fail("softhip: operations are parked or held; release them, or call softhip_reset");
    world_end();
    wanted = s;
    wanted_set = true;
    return 0;
}

SOFTHIP_API void softhip_reset(void) { world_end(); }

int call_enter(enum call c) {
    stay();
    if (here.generation != world.generation) {
        here.generation = world.generation;
        here.device = 0;
        here.error = 0;
        here.in_host_function = false;
    }
    if (here.in_host_function)
        return hipErrorIllegalState;
    if (world.set.no_gpu != 0 || world.set.visibles == 0)
        return world.set.no_gpu == 101 && c != CALL_hipGetDeviceCount ? hipErrorInvalidDevice : hipErrorNoDevice;
    return fault_call(c);
}

int call_leave(int code) {
    if (code != hipSuccess)
        here.error = code;
    return code;
}

SOFTHIP_API int NAMED(hipPeekAtLastError)(void) {
    CALL(hipPeekAtLastError);
    return here.error;
}

SOFTHIP_API int NAMED(hipGetLastError)(void) {
    CALL(hipGetLastError);
    int code = here.error;
    here.error = hipSuccess;
    return code;
}

int current_device(void) { return here.device; }
void set_current_device(int device) { here.device = device; }
void set_in_host_function(bool in) {
    here.generation = world.generation;
    here.in_host_function = in;
    here.depth += in ? 1 : -1; // the worker that runs it is there for as long as the world
}

bool version_at_least(int major, int minor) {
    return world.set.major > major || (world.set.major == major && world.set.minor >= minor);
}

bool name_missing(const char *name, int since) {
    if (!version_at_least(since / 100, since % 100))
        return true;
    size_t n = strlen(name);
    for (const char *at = world.set.missing; (at = strstr(at, name)) != NULL; at += n)
        if ((at == world.set.missing || at[-1] == ',') && (at[n] == ',' || at[n] == 0))
            return true;
    return false;
}
