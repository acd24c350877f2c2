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

// settled says that e cannot go on by itself; what it waits for may still come from another queue that is not settled.
static bool settled(struct engine *e) {
    pthread_mutex_lock(&e->lock);
    bool empty = e->head == NULL;
    bool stopped = e->held && e->steps == 0;
    pthread_mutex_unlock(&e->lock);
    int state = atomic_load(&e->state);
    return empty || state == PARKED || state == DEPENDENT || state == HUNG || state == SPINNING || (stopped && state == HELD);
}

static uint64_t progress(int count) {
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += atomic_load(&world.engines[i]->completed) + atomic_load(&world.engines[i]->submitted);
    return sum;
}

SOFTHIP_API int softhip_settle(unsigned timeout_ms) {
    world_begin();
    uint64_t until = now_ns() + (uint64_t)timeout_ms * 1000000;
    for (;;) {
        pthread_mutex_lock(&world_lock);
        int count = world.engine_count;
        pthread_mutex_unlock(&world_lock);
        uint64_t before = progress(count);
        bool all = true;
        // Twice over: a wait that this look found parked may have been released by a queue that it found empty.
        uint32_t changes = atomic_load(&world.changes);
        for (int look = 0; look < 2 && all; look++) {
            for (int i = 0; i < count && all; i++)
                all = settled(world.engines[i]);
            if (look == 0 && all) {
                uint64_t pause = now_ns() + 500000;
                while (now_ns() < pause)
                    sched_yield();
            }
        }
        if (all && before == progress(count) && changes == atomic_load(&world.changes))
            return 0;
        if (now_ns() >= until)
            return fail("softhip: queues still move");
        sched_yield();
    }
}
