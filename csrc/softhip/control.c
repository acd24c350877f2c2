//go:build cgo && linux

// Deterministic control: hold a queue, let it take steps, wait until nothing moves.
#include <sched.h>

#include "world.h"

static struct engine *engine_at(int queue) {
    struct engine *e = NULL;
    pthread_mutex_lock(&world_lock);
    if (queue >= 0 && queue < world.engine_count)
        e = world.engines[queue];
    pthread_mutex_unlock(&world_lock);
    if (e == NULL)
        fail("softhip: there is no queue %d", queue);
    return e;
}

SOFTHIP_API int softhip_queue(void *handle) {
    struct stream *s;
    world_begin();
    if (stream_enter(handle, &s) != hipSuccess)
        return fail("softhip: no such stream");
    int id = s->queue->id;
    stream_unlock(s, hipSuccess);
    return id;
}

SOFTHIP_API int softhip_ring(int device, int index) {
    world_begin();
    if (device < 0 || device >= world.set.visibles || index < 0 || index >= world.set.sdma_rings)
        return fail("softhip: device %d has no ring %d", device, index);
    pthread_mutex_lock(&world_lock);
    struct engine *e = ring_of(device, index);
    pthread_mutex_unlock(&world_lock);
    return e == NULL ? fail("softhip: out of memory") : e->id;
}

static int govern(int queue, bool held, unsigned steps) {
    struct engine *e = engine_at(queue);
    if (e == NULL)
        return -1;
    pthread_mutex_lock(&e->lock);
    e->held = held;
    e->steps = steps == 0 ? 0 : e->steps + steps;
    pthread_mutex_unlock(&e->lock);
    wake(e);
    return 0;
}

SOFTHIP_API int softhip_hold(int queue) { return govern(queue, true, 0); }
SOFTHIP_API int softhip_step(int queue, unsigned operations) { return govern(queue, true, operations); }
SOFTHIP_API int softhip_release(int queue) { return govern(queue, false, 0); }

enum standing { MOVES, STANDS, TURNS }; // TURNS: a twin that waits, for something that only it knows

// standing says whether e can go on by itself. Its own condition is looked at, for the worker may not have run since.
static enum standing standing(struct engine *e) {
    enum standing is = MOVES;
    pthread_mutex_lock(&e->lock);
    const struct op *o = e->head;
    int state = atomic_load(&e->state);
    if (o == NULL)
        is = STANDS;
    else if (state == HELD)
        is = e->held && e->steps == 0 ? STANDS : MOVES;
    else if (atomic_load(&world.devices[e->device].lost))
        is = MOVES; // to its end
    else if (state == HUNG)
        is = STANDS;
    else if (state == PARKED)
        is = word_met(o, word_load(o)) ? MOVES : STANDS;
    else if (state == DEPENDENT)
        is = point_met(o->after[0]) && point_met(o->after[1]) ? MOVES : STANDS;
    else if (state == LATE)
        is = atomic_load(&world.landings) == atomic_load(&e->landings) ? STANDS : MOVES;
    else if (state == SPINNING)
        is = TURNS;
    pthread_mutex_unlock(&e->lock);
    return is;
}

// turned says that a twin that waits has looked again, twice: once may have been under way.
static bool turned(struct engine *e, uint64_t until) {
    uint64_t pauses = atomic_load(&e->pauses);
    while (standing(e) == TURNS && atomic_load(&e->pauses) < pauses + 2) {
        if (now_ns() >= until)
            return false;
        sched_yield();
    }
    return true;
}

static uint64_t progress(int count) {
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += atomic_load(&world.engines[i]->completed) + atomic_load(&world.engines[i]->submitted);
    return sum;
}

// stand looks at every engine twice: what the first one found standing, a later one may have released.
static bool stand(int count, uint64_t until) {
    uint64_t before = progress(count);
    uint32_t changes = atomic_load(&world.changes);
    for (int look = 0; look < 2; look++)
        for (int i = 0; i < count; i++) {
            struct engine *e = world.engines[i];
            enum standing is = standing(e);
            if (is == TURNS && turned(e, until))
                is = standing(e);
            if (is == MOVES)
                return false;
        }
    return before == progress(count) && changes == atomic_load(&world.changes);
}

SOFTHIP_API int softhip_settle(unsigned timeout_ms) {
    world_begin();
    uint64_t until = now_ns() + (uint64_t)timeout_ms * 1000000;
    for (;;) {
        pthread_mutex_lock(&world_lock);
        int count = world.engine_count;
        pthread_mutex_unlock(&world_lock);
        if (stand(count, until))
            return 0;
        if (now_ns() >= until)
            return fail("softhip: queues still move");
        sched_yield();
    }
}
