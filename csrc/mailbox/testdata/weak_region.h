/*
 * Memory weaker than any GPU's, for testdata/calls.c: one rank's region, as in weak.h. The device works on a cache of it. What lanes
 * put into a send slot stays there until a lane's fence carries it out; what peers sent is read stale until a fence fetches it
 * anew, and is lost at a barrier. A store with release carries out the lines that the same lane stored. Time passes in turns.
 */
#include "region.h"
#include <setjmp.h>
#include <string.h>

enum { WORLD = 4, ME = 1, STRIPES = 3, SLOT = 4096, TURN = 1000000, HUNG = 5000 };

struct memory {
    struct hf_region region;
    unsigned char recv[HF_CLASSES][WORLD][HF_SLOTS][SLOT], send[WORLD][HF_SLOTS][SLOT];
};
HF_ASSERT(__builtin_offsetof(struct memory, recv[1][2][1]) == HF_RECV_AT(WORLD, SLOT, HF_PAIR, 2, 1));
HF_ASSERT(__builtin_offsetof(struct memory, send[2][1]) == HF_SEND_AT(WORLD, SLOT, 2, 1));
HF_ASSERT(sizeof(struct memory) == HF_REGION_BYTES(WORLD, SLOT));

static struct world {
    _Alignas(16) struct memory host;
    _Alignas(16) struct memory cached;
    struct hf_mailbox device;
    hf_u64 clock;
    unsigned turns, barriers;
    void (*turn)(void);                       /* after each turn of a wait */
    void (*barrier)(void);                    /* before each barrier */
    void (*rung)(hf_u32 target, hf_u64 epoch); /* as soon as the proxy sees it */
    const char *failed;                       /* what the check that runs has found */
    jmp_buf hung;
} world;

static hf_u64 *as_host(HF_GLOBAL const hf_u64 *p) {
    return (hf_u64 *)((char *)&world.host + ((const char *)p - (const char *)&world.cached));
}
HF_FN hf_u64 hf_load_system(HF_GLOBAL const hf_u64 *p) { return *as_host(p); }
HF_FN void hf_store_system(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    size_t at = (size_t)((char *)p - (char *)&world.cached), line = sizeof(struct hf_doorbell);
    *p = v;
    memcpy(world.host.region.doorbell, world.cached.region.doorbell, sizeof world.host.region.doorbell);
    memcpy(&world.host.region.record, &world.cached.region.record, sizeof world.host.region.record);
    if (at < sizeof world.host.region.doorbell && at % line == 0 && world.rung)
        world.rung((hf_u32)(at / line), v);
}
HF_FN void hf_acquire_system(void) { memcpy(world.cached.recv, world.host.recv, sizeof world.host.recv); }
HF_FN void hf_release_system(void) { memcpy(world.host.send, world.cached.send, sizeof world.host.send); }
HF_FN hf_u64 hf_load_device(HF_GLOBAL const hf_u64 *p) { return *p; }
HF_FN void hf_store_device(HF_GLOBAL hf_u64 *p, hf_u64 v) { *p = v; }
HF_FN int hf_claim_device(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    if (*p)
        return 0;
    *p = v;
    return 1;
}
HF_FN int hf_arrive_device(HF_GLOBAL hf_u64 *p, hf_u32 n) {
    if (++*p != n)
        return 0;
    *p = 0;
    return 1;
}
HF_FN void hf_barrier(void) {
    world.barriers++;
    memset(world.cached.recv, 0xEE, sizeof world.cached.recv);
    if (world.barrier)
        world.barrier();
}
HF_FN hf_u64 hf_clock(void) { return world.clock; }
HF_FN void hf_pause(void) {
    world.clock += TURN;
    if (++world.turns > HUNG)
        longjmp(world.hung, 1);
    if (world.turn)
        world.turn();
}
