//go:build cgo && linux

// What a worker does with one operation.

#include <sched.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "world.h"

static _Thread_local struct engine *mine;
static _Thread_local struct pace resting;

static bool cut_off(const struct engine *e) {
    return atomic_load(&world.ending) || atomic_load(&world.devices[e->device].lost);
}

uint64_t word_load(const struct op *o) {
    if (o->width == 4)
        return __atomic_load_n((const uint32_t *)(const void *)o->to, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)(const void *)o->to, __ATOMIC_ACQUIRE);
}

// unseen says that the value at a word came from a stream's write, where such a write releases nobody.
static bool unseen(const struct op *o, uint64_t is) {
    bool found = false;
    pthread_mutex_lock(&world.stale_lock);
    for (size_t i = 0; i < sizeof world.unseen / sizeof *world.unseen; i++)
        if (world.unseen[i].at == (uintptr_t)o->to && world.unseen[i].value == is)
            found = true;
    pthread_mutex_unlock(&world.stale_lock);
    return found;
}

static void remember_unseen(const struct op *o, uint64_t value) {
    pthread_mutex_lock(&world.stale_lock);
    size_t n = sizeof world.unseen / sizeof *world.unseen, at = world.unseen_next;
    for (size_t i = 0; i < n; i++)
        if (world.unseen[i].at == (uintptr_t)o->to)
            at = i;
    if (at == world.unseen_next)
        world.unseen_next = (world.unseen_next + 1) % (unsigned)n;
    world.unseen[at].at = (uintptr_t)o->to;
    world.unseen[at].value = value;
    pthread_mutex_unlock(&world.stale_lock);
}

// forget_unseen is for memory that is given back: what comes to lie there has been written by no stream.
void forget_unseen(const char *at, size_t bytes) {
    pthread_mutex_lock(&world.stale_lock);
    for (size_t i = 0; i < sizeof world.unseen / sizeof *world.unseen; i++)
        if (world.unseen[i].at - (uintptr_t)at < bytes)
            world.unseen[i].at = 0;
    pthread_mutex_unlock(&world.stale_lock);
}

bool word_met(const struct op *o, uint64_t is) {
    uint64_t all = o->width == 4 ? 0xffffffffu : ~(uint64_t)0;
    uint64_t value = o->value & all, mask = o->mask & all;
    bool met = false;
    switch (o->flags) {
    case WAIT_GTE: met = (is & mask) >= value; break;
    case WAIT_EQ: met = (is & mask) == value; break;
    case WAIT_AND: met = (is & mask & value) != 0; break;
    case WAIT_NOR: met = (~(is | value) & mask & all) != 0; break;
    }
    return met && (world.set.write_releases || !unseen(o, is));
}

static void run_wait(struct engine *e, const struct op *o) {
    struct pace turn = {.dozing = &e->dozing};
    atomic_store(&e->looks_at, (uintptr_t)o->to);
    for (;;) {
        uint32_t seen = atomic_load(&e->poke);
        if (word_met(o, word_load(o)) || cut_off(e))
            break;
        atomic_store_explicit(&e->state, PARKED, memory_order_relaxed);
        pace(&turn, &e->poke, seen);
    }
    atomic_store(&e->looks_at, 0);
    atomic_store_explicit(&e->state, RUNNING, memory_order_relaxed);
    if (!world.set.relaxed_waits)
        acquire_stale();
}

static void run_write(const struct op *o) {
    release_stale();
    uint64_t value = o->value;
    if (o->flags == WRITE_INCREMENT)
        value = word_load(o) + value;
    if (o->flags == WRITE_DECREMENT)
        value = word_load(o) - value;
    value &= o->width == 4 ? 0xffffffffu : ~(uint64_t)0;
    if (!world.set.write_releases)
        remember_unseen(o, value);
    if (o->width == 4)
        __atomic_store_n((uint32_t *)(void *)o->to, (uint32_t)value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint64_t *)(void *)o->to, value, __ATOMIC_SEQ_CST);
    changed(o->to, o->width);
}

// rest passes modelled or injected time.
static void rest(struct engine *e, uint64_t until_ns) {
    while (now_ns() < until_ns && !cut_off(e)) {
        uint64_t left = until_ns - now_ns();
        if (left >= (uint64_t)1 << 63)
            return;
        if (left >= 160000)
            futex_wait(&e->bell, atomic_load(&e->bell), left - 150000 < 1000000 ? left - 150000 : 1000000);
        else
            sched_yield();
    }
}

static void stick(struct engine *e) {
    atomic_store(&e->state, HUNG);
    while (!cut_off(e)) {
        uint32_t seen = atomic_load(&e->bell);
        atomic_store(&e->asleep, 1);
        if (!cut_off(e))
            futex_wait(&e->bell, seen, 50000000);
        atomic_store(&e->asleep, 0);
    }
}

enum { MODEL_SLICE = 64 << 10 };

// model_ns is how long after its start a copy has moved this many bytes.
static uint64_t model_ns(size_t bytes) {
    uint64_t ns = (uint64_t)world.set.copy_latency_us * 1000;
    if (world.set.copy_mb_s > 0)
        ns += (uint64_t)((double)bytes * 1000.0 / (double)world.set.copy_mb_s);
    return ns;
}

// move_bytes copies; pageable memory may not be there, which the kernel can tell without a signal.
static int move_bytes(const struct op *o, size_t at, size_t bytes) {
    if (!o->pageable) {
        memmove(o->to + at, o->from + at, bytes);
        return hipSuccess;
    }
    while (bytes > 0) {
        struct iovec to = {o->to + at, bytes}, from = {o->from + at, bytes};
        ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        if (n <= 0)
            return hipErrorIllegalAddress;
        at += (size_t)n;
        bytes -= (size_t)n;
    }
    return hipSuccess;
}

// move_modelled moves each slice by the time at which the model has moved it, the last one at the end.
static int move_modelled(struct engine *e, const struct op *o) {
    bool apart = o->to + o->bytes <= o->from || o->from + o->bytes <= o->to;
    size_t slice = apart && world.set.copy_mb_s > 0 ? MODEL_SLICE : o->bytes;
    for (size_t at = 0; at < o->bytes && !cut_off(e); at += slice) {
        size_t bytes = o->bytes - at < slice ? o->bytes - at : slice;
        uint64_t by = model_ns(at + bytes);
        if (by > 0)
            rest(e, o->start_ns + by);
        int code = cut_off(e) ? hipSuccess : move_bytes(o, at, bytes);
        if (code != hipSuccess)
            return code;
    }
    return hipSuccess;
}

static int run_copy(struct engine *e, const struct op *o, struct fault f) {
    if (!o->sdma && !(world.set.relaxed_waits && e->after_wait))
        acquire_stale();
    if (f.what == 0) {
        int moved = move_modelled(e, o);
        changed(o->to, o->bytes);
        return moved;
    }
    uint64_t delay = model_ns(o->bytes);
    if (delay > 0)
        rest(e, o->start_ns + delay);
    if (f.what == 'd')
        return hipSuccess;
    uint32_t landings = atomic_load(&world.landings);
    if (f.what == 't' && f.us > 0)
        rest(e, now_ns() + (uint64_t)f.us * 1000);
    if (f.what == 't' && f.us == 0) {
        atomic_store(&e->landings, landings);
        atomic_store(&e->state, LATE);
        for (struct pace turn = {0}; atomic_load(&world.landings) == landings && !cut_off(e);)
            pace(&turn, &world.landings, landings);
        atomic_store(&e->state, RUNNING);
    }
    if (cut_off(e))
        return hipSuccess;
    int code = move_bytes(o, 0, o->bytes);
    changed(o->to, o->bytes);
    if (f.what == 'l')
        stick(e);
    return code;
}

static void run_twin(struct engine *e, const struct op *o) {
    if (!(world.set.relaxed_waits && e->after_wait))
        acquire_stale();
    mine = e;
    resting = (struct pace){.dozing = &e->dozing};
    if (setjmp(e->leave) == 0)
        o->twin(o->args, o->blocks, o->threads);
    mine = NULL;
    atomic_store(&e->looks_at, 0);
    changed(NULL, 0);
}

SOFTHIP_API void softhip_pause(void) {
    struct engine *e = mine;
    if (e == NULL) {
        sched_yield();
        return;
    }
    if (cut_off(e))
        longjmp(e->leave, 1);
    uint64_t now = now_ns();
    if (now - atomic_load_explicit(&e->pause_at, memory_order_relaxed) > 5000)
        resting = (struct pace){.dozing = &e->dozing}; // it worked between
    atomic_store_explicit(&e->state, SPINNING, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->pauses, 1, memory_order_relaxed);
    atomic_store(&e->looks_at, ANYWHERE);
    uint32_t seen = atomic_load(&e->poke);
    pace(&resting, &e->poke, seen); // it counts as waiting until it ends: whether it still does, its next pause tells
    atomic_store_explicit(&e->pause_at, now_ns(), memory_order_relaxed);
}

// op_run runs the head operation; nothing is done once the world ends, or after the device has failed.
int op_run(struct engine *e, struct op *o) {
    for (int i = 0; i < 2; i++) {
        if (point_met(o->after[i]))
            continue;
        atomic_store(&e->state, DEPENDENT);
        point_wait(o->after[i], e);
        o->start_ns = now_ns();
        atomic_store(&e->state, RUNNING);
    }
    struct fault f = fault_op(o, e);
    if (f.what == 'h' || atomic_load(&e->hang))
        stick(e);
    if (cut_off(e) || atomic_load(&world.devices[e->device].sticky) != hipSuccess)
        return hipSuccess;
    if (f.what == 'a')
        return f.code;
    int code = hipSuccess;
    bool was_wait = false;
    switch (o->kind) {
    case OP_MARK:
        if ((o->flags & (EVENT_NO_FENCE | EVENT_TO_DEVICE)) == 0)
            release_stale();
        was_wait = e->after_wait;
        break;
    case OP_COPY: code = run_copy(e, o, f); break;
    case OP_SET:
        memset(o->to, (int)o->value, o->bytes);
        changed(o->to, o->bytes);
        break;
    case OP_WAIT:
        run_wait(e, o);
        was_wait = true;
        break;
    case OP_WRITE:
        run_write(o);
        was_wait = e->after_wait;
        break;
    case OP_KERNEL: run_twin(e, o); break;
    case OP_HOST:
        set_in_host_function(true);
        o->fn(o->fn_arg);
        set_in_host_function(false);
        break;
    }
    e->after_wait = was_wait;
    return code;
}
