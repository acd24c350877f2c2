/*
 * The host as a target: lanes are loops between barriers, so a barrier is nothing; blocks run one after the other. A test may
 * bring memory of its own, weaker than a host's, as HF_MEMORY.
 */
#ifndef HF_PLATFORM_HOST_H
#define HF_PLATFORM_HOST_H

#define HF_FN static inline
#define HF_SHARED(name) hf_u64 name = 0
#define HF_CLOCK_KHZ(args) 1000000ull
typedef hf_u32 hf_wide __attribute__((vector_size(16), may_alias));

#ifdef HF_MEMORY
#include HF_MEMORY
#else
#include <time.h>

/* Acquires by itself: race detectors know words and not fences. */
HF_FN hf_u64 hf_load_system(HF_GLOBAL const hf_u64 *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
HF_FN void hf_store_system(HF_GLOBAL hf_u64 *p, hf_u64 v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
HF_FN void hf_acquire_system(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
HF_FN void hf_release_system(void) { __atomic_thread_fence(__ATOMIC_RELEASE); }
HF_FN hf_u64 hf_load_device(HF_GLOBAL const hf_u64 *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
HF_FN void hf_store_device(HF_GLOBAL hf_u64 *p, hf_u64 v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
HF_FN int hf_claim_device(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    hf_u64 none = 0;
    return __atomic_compare_exchange_n(p, &none, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
HF_FN int hf_arrive_device(HF_GLOBAL hf_u64 *p, hf_u32 n) {
    if (__atomic_add_fetch(p, 1, __ATOMIC_ACQ_REL) != n)
        return 0;
    hf_store_device(p, 0);
    return 1;
}
HF_FN void hf_barrier(void) {}
HF_FN hf_u64 hf_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (hf_u64)t.tv_sec * 1000000000u + (hf_u64)t.tv_nsec;
}
HF_FN void hf_pause(void) { softhip_pause(); }
#endif

/* A block of the grid; not a lane of it. */
struct hf_grid {
    hf_u32 block, blocks, threads;
};
#define HF_BLOCK grid->block
#define HF_BLOCKS grid->blocks
#define HF_THREADS grid->threads
#define HF_LANES(lane) for (hf_u32 lane = 0; lane < grid->threads; lane++)
/* A run of neighbours: lanes follow each other here, and would each fetch every line. */
#define HF_SHARE(i, n, first, step)                                                                                    \
    for (hf_u64 i = hf_part(n, first, step), hf_end = hf_part(n, (first) + 1, step); i < hf_end; i++)
HF_FN hf_u64 hf_part(hf_u64 n, hf_u64 lane, hf_u64 lanes) { return n ? n * lane / lanes : 0; }
#define HF_KERNEL(name)                                                                                                \
    HF_FN void name##_block(const struct hf_args *args, const struct hf_grid *grid);                                   \
    void name##__host(const void *args, unsigned blocks, unsigned threads) {                                           \
        struct hf_grid grid = {0, blocks, threads};                                                                    \
        for (; grid.block < blocks; grid.block++)                                                                      \
            name##_block((const struct hf_args *)args, &grid);                                                         \
    }                                                                                                                  \
    HF_FN void name##_block(const struct hf_args *args, const struct hf_grid *grid)
#define HF_HALVES(name, type, first, second)                                                                           \
    void name##__host(const void *args, unsigned blocks, unsigned threads) {                                           \
        struct hf_grid grid = {0, blocks, threads};                                                                    \
        for (; grid.block < blocks; grid.block++)                                                                      \
            first((const struct type *)args, &grid);                                                                   \
        for (grid.block = 0; grid.block < blocks; grid.block++)                                                        \
            second((const struct type *)args, &grid);                                                                  \
    }
#define HF_GRID , const struct hf_grid *grid
#define HF_THIS_GRID , grid
#define HF_UNROLL

#endif
