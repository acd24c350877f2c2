//go:build cgo && linux

// Engines: hardware queues and SDMA rings. Each runs its operations in order, one at a time, on a thread of its own, so an
// operation that waits holds up all behind it.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "world.h"

struct engine *engine_new(int device, int priority, bool ring) {
    int id = atomic_load(&world.engine_count);
    if (id == MAX_ENGINES)
        return NULL;
    struct engine *e = aligned_alloc(64, (sizeof *e + 63) & ~(size_t)63);
    if (e == NULL)
        return NULL;
    memset(e, 0, sizeof *e);
    e->id = id;
    e->device = device;
    e->priority = priority;
    e->ring = ring;
    pthread_mutex_init(&e->lock, NULL);
    world.engines[id] = e;
    atomic_store(&world.engine_count, id + 1);
    return e;
}

struct op *op_new(struct engine *e) {
    pthread_mutex_lock(&e->lock);
    struct op *o = e->spare;
    if (o != NULL)
        e->spare = o->next;
    pthread_mutex_unlock(&e->lock);
    if (o == NULL)
        o = aligned_alloc(64, (sizeof *o + 63) & ~(size_t)63);
    if (o != NULL)
        memset(o, 0, offsetof(struct op, inline_args));
    return o;
}

static void op_drop(struct op *o) {
    if (o->args != NULL && o->args != o->inline_args)
        free(o->args);
    o->args = NULL;
    if (o->timing != NULL && atomic_fetch_sub(&o->timing->holders, 1) == 1)
        free(o->timing);
    o->timing = NULL;
}

void op_free(struct engine *e, struct op *o) {
    unuse(o);
    op_drop(o);
    pthread_mutex_lock(&e->lock);
    o->next = e->spare;
    e->spare = o;
    pthread_mutex_unlock(&e->lock);
}

void wake(struct engine *e) {
    atomic_fetch_add(&e->bell, 1);
    if (atomic_load(&e->asleep) != 0)
        futex_wake(&e->bell);
}

bool point_met(struct point p) {
    return p.engine == NULL || atomic_load_explicit(&p.engine->completed, memory_order_acquire) >= p.seq;
}

// rouse wakes e's worker, and all that wait for e, to look again.
void rouse(struct engine *e) {
    wake(e);
    atomic_fetch_add(&e->done, 1);
    futex_wake(&e->done);
}

static bool cut_short(const struct engine *waiter) {
    return atomic_load(&world.ending) || (waiter != NULL && atomic_load(&world.devices[waiter->device].lost));
}

// point_wait returns false when the world ended first. A waiter is a worker, which a lost device ends too.
bool point_wait(struct point p, struct engine *waiter) {
    struct pace turn = {0};
    while (!point_met(p)) {
        if (cut_short(waiter))
            return false;
        uint32_t seen = atomic_load(&p.engine->done);
        if (turn.turns < 200) {
            pace(&turn, &p.engine->done, seen);
            continue;
        }
        atomic_fetch_add(&p.engine->watchers, 1);
        if (!point_met(p) && !cut_short(waiter))
            futex_wait(&p.engine->done, seen, 0);
        atomic_fetch_sub(&p.engine->watchers, 1);
    }
    return true;
}

// next waits until an operation may begin. NULL: the world ends.
static struct op *next(struct engine *e) {
    struct pace turn = {0};
    for (;;) {
        uint32_t seen = atomic_load(&e->bell);
        pthread_mutex_lock(&e->lock);
        struct op *o = e->head;
        bool allowed = o != NULL && (!e->held || e->steps > 0);
        if (e->stop && o == NULL) {
            pthread_mutex_unlock(&e->lock);
            return NULL;
        }
        if (allowed || (o != NULL && e->stop)) {
            if (e->held && e->steps > 0)
                e->steps--;
            atomic_store(&e->state, RUNNING);
            pthread_mutex_unlock(&e->lock);
            return o;
        }
        atomic_store(&e->state, o == NULL ? IDLE : HELD);
        pthread_mutex_unlock(&e->lock);
        while (atomic_load(&e->bell) == seen && turn.turns < 200)
            pace(&turn, &e->bell, seen);
        if (atomic_load(&e->bell) != seen) {
            turn.turns = 0;
            continue;
        }
        atomic_store(&e->asleep, 1);
        if (atomic_load(&e->bell) == seen)
            futex_wait(&e->bell, seen, 0);
        atomic_store(&e->asleep, 0);
        turn.turns = 0;
    }
}

static void finish(struct engine *e, struct op *o, int code) {
    if (code > 0)
        device_fail(e->device, code);
    if (o->timing != NULL)
        atomic_store(&o->timing->at_ns, now_ns());
    trace_add(o, e, code);
    unuse(o);
    op_drop(o);
    uint64_t seq = o->seq;
    pthread_mutex_lock(&e->lock);
    e->head = o->next;
    if (e->head == NULL)
        e->tail = NULL;
    e->queued--;
    o->next = e->spare;
    e->spare = o;
    atomic_store(&e->state, e->head == NULL ? IDLE : RUNNING);
    atomic_store(&e->completed, seq);
    pthread_mutex_unlock(&e->lock);
    atomic_fetch_add(&e->done, 1);
    if (atomic_load(&e->watchers) > 0)
        futex_wake(&e->done);
}

static void *work(void *arg) {
    struct engine *e = arg;
    prctl(PR_SET_TIMERSLACK, 1ul);
    for (struct op *o; (o = next(e)) != NULL;) {
        if (o->start_ns == 0)
            o->start_ns = now_ns();
        finish(e, o, op_run(e, o));
    }
    return NULL;
}

// start starts the worker with no signal to it but its own faults: a signal of the process belongs to the host's threads.
static void start(struct engine *e) {
    sigset_t none, before;
    sigfillset(&none);
    sigdelset(&none, SIGSEGV);
    sigdelset(&none, SIGBUS);
    sigdelset(&none, SIGFPE);
    sigdelset(&none, SIGILL);
    sigdelset(&none, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    e->started = pthread_create(&e->thread, NULL, work, e) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// engine_submit appends o, which must not be touched afterwards. World locked.
struct point engine_submit(struct engine *e, struct op *o) {
    o->next = NULL;
    o->queued_ns = now_ns();
    pthread_mutex_lock(&e->lock);
    if (e->queued == 0 && !e->held)
        o->start_ns = o->queued_ns; // an idle engine begins at once, however late its worker wakes
    o->seq = atomic_load(&e->submitted) + 1;
    struct point p = {e, o->seq};
    if (e->tail == NULL)
        e->head = o;
    else
        e->tail->next = o;
    e->tail = o;
    e->queued++;
    atomic_store(&e->submitted, p.seq);
    if (!e->started)
        start(e);
    pthread_mutex_unlock(&e->lock);
    wake(e);
    return p;
}

// engine_end joins the worker of a world that is ending: what is queued is passed over.
void engine_end(struct engine *e) {
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    bool started = e->started;
    pthread_mutex_unlock(&e->lock);
    wake(e);
    if (started)
        pthread_join(e->thread, NULL);
    for (struct op *o = e->spare, *next; o != NULL; o = next) {
        next = o->next;
        free(o);
    }
    e->spare = NULL;
}
