//go:build cgo && linux

// Addresses are given once a process: what still knows one when its memory or its world has ended meets nothing of the next.
// They are taken one after the other from reserved stretches, so what has ended lies side by side and costs one mapping.

#include <sys/mman.h>

#include "world.h"

enum { STRETCH = 1 << 30, PAGE = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *next;
static size_t left;

static void *reserve(void *at, size_t bytes, int fixed) {
    void *got = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    return got == MAP_FAILED ? NULL : got;
}

// claim reserves whole pages for bytes, untouchable, at addresses that no one had before; NULL where there are none.
void *claim(size_t bytes) {
    bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    pthread_mutex_lock(&lock);
    if (bytes > left) {
        size_t stretch = bytes > STRETCH ? bytes : STRETCH;
        next = reserve(NULL, stretch, 0);
        left = next == NULL ? 0 : stretch;
    }
    void *at = bytes > left ? NULL : next;
    if (at != NULL) {
        next += bytes;
        left -= bytes;
    }
    pthread_mutex_unlock(&lock);
    return at;
}

// retire gives back the memory that lies at claimed addresses, and keeps those.
void retire(void *at, size_t bytes) {
    if (reserve(at, bytes, MAP_FIXED) == NULL)
        munmap(at, bytes);
}
