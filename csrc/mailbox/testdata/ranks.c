/*
 * The kernels' host build on a thread a rank, and the ranks' proxies on others, for a race detector: doorbells and flags alone order
 * what they share. That no slot is written before it is read, by its proxy and by its peer, is thereby seen and not argued.
 */
#define HF_HOST_BUILD
#include "twin.c"
#include "region.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WORLD = 3, STRIPES = 2, CALLS = 240, FLOATS = 50, SLOT = 4096 };

struct memory {
    struct hf_region region;
    unsigned char recv[HF_CLASSES][WORLD][HF_SLOTS][SLOT], send[WORLD][HF_SLOTS][SLOT];
};
static struct rank {
    _Alignas(4096) struct memory memory;
    struct hf_mailbox mailbox;
    _Alignas(16) float in[FLOATS], out[WORLD * FLOATS];
    pthread_t kernels, proxy;
    int wrong;
} ranks[WORLD];
static int ended;

static hf_u32 number(const struct rank *me) { return (hf_u32)(me - ranks); }

/* What the adapters do: each stripe's payload, then its flag. */
static void post(const struct rank *me, hf_u32 target, hf_u32 peer, hf_u64 epoch) {
    const struct hf_doorbell *doorbell = &me->memory.region.doorbell[target];
    hf_u32 klass = target == number(me) ? HF_GROUP : HF_PAIR, slot = (hf_u32)epoch % 2;
    unsigned char *to = ranks[peer].memory.recv[klass][number(me)][slot];
    hf_u64 bytes = doorbell->bytes[slot], half = bytes / 32 * 16;
    hf_u64 *flag = ranks[peer].memory.region.flag[klass][slot][number(me)];
    memcpy(to + half, me->memory.send[target][slot] + half, bytes - half);
    __atomic_store_n(&flag[1], doorbell->flag[slot], __ATOMIC_RELEASE);
    memcpy(to, me->memory.send[target][slot], half);
    __atomic_store_n(&flag[0], doorbell->flag[slot], __ATOMIC_RELEASE);
}
static void *proxy(void *of) {
    struct rank *me = of;
    hf_u64 posted[WORLD] = {0};
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        hf_u32 target, peer;
        for (target = 0; target < WORLD; target++) {
            hf_u64 rung = __atomic_load_n(&me->memory.region.doorbell[target].epoch, __ATOMIC_ACQUIRE);
            while (posted[target] < rung) {
                posted[target]++;
                for (peer = 0; peer < WORLD; peer++)
                    if (peer != number(me) && (target == peer || target == number(me)))
                        post(me, target, peer, posted[target]);
            }
        }
        sched_yield();
    }
    return NULL;
}

static float value(hf_u32 rank, int call, int i) { return (float)(rank * 10000 + (hf_u32)call * 100 + (hf_u32)i); }

static void *kernels(void *of) {
    struct rank *me = of;
    struct hf_call a = {0};
    int call, i;
    hf_u32 source;
    a.mailbox = (hf_u64)&me->mailbox;
    a.region = (hf_u64)&me->memory;
    a.bytes = sizeof me->in;
    a.slot_bytes = SLOT;
    a.world = WORLD;
    a.rank = number(me);
    a.stripes = STRIPES;
    a.dtype = HF_F32;
    a.reduce = HF_SUM;
    for (call = 0; call < CALLS; call++) {
        hf_u32 other = call / 3 % 2 == 0 ? number(me) ^ 1 : 3 - number(me); /* a peer, or one beyond the world: then idle */
        a.in = (hf_u64)me->in;
        a.out = (hf_u64)me->out;
        a.target = number(me);
        a.tag = (hf_u32)call;
        for (i = 0; i < FLOATS; i++)
            me->in[i] = me->out[i] = value(number(me), call, i);
        if (call % 3 == 0) {
            hf_gather__host(&a, 2, 32);
            for (source = 0; source < WORLD; source++)
                for (i = 0; i < FLOATS; i++)
                    me->wrong += me->out[source * FLOATS + (hf_u32)i] != value(source, call, i);
        } else if (call % 3 == 1) {
            a.in = a.out;
            hf_all_reduce__host(&a, 2, 32);
            for (i = 0; i < FLOATS; i++)
                me->wrong += me->out[i] != value(0, call, i) + value(1, call, i) + value(2, call, i);
        } else if (other < WORLD && other != number(me)) {
            a.target = other;
            hf_exchange__host(&a, 2, 32);
            for (i = 0; i < FLOATS; i++)
                me->wrong += me->out[i] != value(other, call, i);
        }
    }
    return NULL;
}

int main(void) {
    int i, wrong = 0;
    for (i = 0; i < WORLD; i++)
        pthread_create(&ranks[i].proxy, NULL, proxy, &ranks[i]);
    for (i = 0; i < WORLD; i++)
        pthread_create(&ranks[i].kernels, NULL, kernels, &ranks[i]);
    for (i = 0; i < WORLD; i++) {
        pthread_join(ranks[i].kernels, NULL);
        wrong += ranks[i].wrong;
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    for (i = 0; i < WORLD; i++)
        pthread_join(ranks[i].proxy, NULL);
    printf("%s %d wrong bytes\n", wrong ? "FAIL" : "PASS", wrong);
    return wrong != 0;
}
