//go:build cgo && linux

// Host memory that is not coherent: the device has a copy of its own. The copies meet at an acquire (host to device) and
// at a release (device to host); each side's changes are those bytes in which it differs from what both last agreed on.
#include <stdlib.h>

#include "world.h"

enum { MAX_STALE = 1024 };
static struct alloc *stale[MAX_STALE];

void stale_add(struct alloc *a) {
    pthread_mutex_lock(&world.stale_lock);
    if (atomic_load(&world.stale_count) < MAX_STALE)
        stale[atomic_fetch_add(&world.stale_count, 1)] = a;
    pthread_mutex_unlock(&world.stale_lock);
}

void stale_remove(struct alloc *a) {
    pthread_mutex_lock(&world.stale_lock);
    int n = atomic_load(&world.stale_count);
    for (int i = 0; i < n; i++)
        if (stale[i] == a) {
            stale[i] = stale[n - 1];
            atomic_store(&world.stale_count, n - 1);
            break;
        }
    pthread_mutex_unlock(&world.stale_lock);
}

static void move(const char *from, char *to, char *agreed, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char is = __atomic_load_n(from + i, __ATOMIC_RELAXED);
        if (is != agreed[i]) {
            __atomic_store_n(to + i, is, __ATOMIC_RELAXED);
            agreed[i] = is;
        }
    }
}

static void each(bool to_device) {
    if (atomic_load(&world.stale_count) == 0)
        return;
    pthread_mutex_lock(&world.stale_lock);
    for (int i = 0; i < atomic_load(&world.stale_count); i++) {
        struct alloc *a = stale[i];
        if (to_device)
            move((char *)a->base, a->view, a->agreed, a->size);
        else
            move(a->view, (char *)a->base, a->agreed, a->size);
    }
    pthread_mutex_unlock(&world.stale_lock);
}

void acquire_stale(void) { each(true); }
void release_stale(void) { each(false); }
