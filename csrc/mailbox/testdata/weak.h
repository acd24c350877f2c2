/*
 * Memory weaker than any GPU's, for testdata/checks.c. The device reads and writes host memory through a cache of its own: what
 * a lane stores stays there until a lane's fence carries it out, and a stale copy is read until a fence fetches anew. A store
 * with release carries out the descriptors, which the same lane stored, and nothing that other lanes did. What lanes fetched is
 * lost at a barrier. Time passes in turns.
 */
#include <setjmp.h>
#include <string.h>

enum { WINDOW = 4096, TURN = 1000000, HUNG = 5000 };

static struct world {
    struct hf_host host, cached_host;
    _Alignas(16) unsigned char down[2 * WINDOW], up[2 * WINDOW];
    _Alignas(16) unsigned char cached_down[2 * WINDOW], cached_up[2 * WINDOW];
    struct hf_device device;
    hf_u64 clock;
    unsigned turns, barriers;
    void (*turn)(void);          /* after each turn of a wait */
    void (*barrier)(void);       /* before each barrier */
    void (*ready)(hf_u64);       /* as soon as the host sees a sequence as ready */
    const char *failed;          /* what the check that runs has found */
    jmp_buf hung;
} world;

static hf_u64 *as_host(HF_GLOBAL const hf_u64 *p) {
    return (hf_u64 *)((char *)&world.host + ((const char *)p - (const char *)&world.cached_host));
}
HF_FN hf_u64 hf_load_system(HF_GLOBAL const hf_u64 *p) { return *as_host(p); }
HF_FN void hf_store_system(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    memcpy(world.host.descriptor, world.cached_host.descriptor, sizeof world.host.descriptor);
    *as_host(p) = v;
    if (as_host(p) < world.host.descriptor && world.ready)
        world.ready(v);
}
HF_FN void hf_acquire_system(void) { memcpy(world.cached_up, world.up, sizeof world.up); }
HF_FN void hf_release_system(void) { memcpy(world.down, world.cached_down, sizeof world.down); }
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
    memset(world.cached_up, 0xEE, sizeof world.cached_up);
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
