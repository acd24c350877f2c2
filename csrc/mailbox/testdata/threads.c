/*
 * The kernels' host build on one thread and a host on another, for a race detector: the words alone order what they share.
 */
#define HF_HOST_BUILD
#include "twin.c"
#include <pthread.h>
#include <stdio.h>

enum { CALLS = 2 * HF_RING + 3, BYTES = 200, WINDOW = 256 };

static struct hf_device device;
static struct hf_host host;
static _Alignas(16) unsigned char down[2 * WINDOW], up[2 * WINDOW], memory[WINDOW];

static void *proxy(void *unused) {
    hf_u64 sequence;
    int i;
    for (sequence = 1; sequence <= CALLS; sequence++) {
        hf_u64 slot = sequence % HF_RING, window = sequence % HF_WINDOWS * WINDOW;
        while (__atomic_load_n(&host.ready[slot], __ATOMIC_ACQUIRE) != sequence)
            sched_yield();
        for (i = 0; i < BYTES; i++)
            up[window + (hf_u64)i] = (unsigned char)(down[window + (hf_u64)i] + host.descriptor[slot]);
        __atomic_store_n(&host.done[slot], sequence, __ATOMIC_RELEASE);
    }
    return unused;
}

int main(void) {
    struct hf_args a = {0};
    pthread_t thread;
    hf_u64 sequence;
    int i, wrong = 0;
    a.device = (hf_u64)&device;
    a.host = (hf_u64)&host;
    a.window = WINDOW;
    a.memory = (hf_u64)memory;
    a.pieces = 1;
    a.bytes = BYTES;
    pthread_create(&thread, NULL, proxy, NULL);
    for (sequence = 1; sequence <= CALLS; sequence++) {
        for (i = 0; i < BYTES; i++)
            memory[i] = (unsigned char)(sequence + (hf_u64)i);
        a.descriptor = 3 * sequence;
        a.slab = (hf_u64)down;
        hf_stage__host(&a, 3, 32);
        a.slab = (hf_u64)up;
        hf_collect__host(&a, 3, 32);
        for (i = 0; i < BYTES; i++)
            wrong += memory[i] != (unsigned char)(4 * sequence + (hf_u64)i);
    }
    pthread_join(thread, NULL);
    printf("%s %d wrong bytes\n", wrong ? "FAIL" : "PASS", wrong);
    return wrong != 0;
}
