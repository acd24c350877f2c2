/*
 * What mailbox.hip needs of a target: amdgcn, PTX or the host. Words in host memory are loaded and stored, never read, modified
 * and written: not every platform carries atomics over its bus.
 *
 *   hf_load_system, hf_store_system   a host word: relaxed; with release of all that this lane did
 *   hf_acquire_system, hf_release_system   fences, to and from the host
 *   hf_load_device, hf_store_device   a device word, relaxed, seen by all blocks
 *   hf_claim_device                   from 0 to a value, once: true for who did it
 *   hf_arrive_device                  true for the last of n; all that the others did is seen by it; the count is 0 again
 *   hf_barrier                        of the lanes of a block, with the order of their memory
 *   HF_LANES, HF_SHARE                the lanes of a block; one lane's share of n, of all that take part
 *   HF_HALVES                         a kernel of two functions: on the host all blocks do the first before one does the second
 *   HF_GRID, HF_THIS_GRID             in a function that has lanes, after its other parameters and arguments
 *   HF_UNROLL                         before a loop of few, known turns, whose arrays are registers
 *   hf_clock                          ticks of HF_CLOCK_KHZ
 *   hf_pause                          between two looks at a word
 */
#ifndef HF_PLATFORM_H
#define HF_PLATFORM_H

/* Device and host memory, never a block's own: what a plain pointer could also mean costs a copy half its loads in flight. */
#if defined(__AMDGCN__) || defined(__NVPTX__)
#define HF_GLOBAL __attribute__((address_space(1)))
#else
#define HF_GLOBAL
#endif
#define HF_PTR(type, address) ((HF_GLOBAL type *)(address))

#if defined(__AMDGCN__)
#define HF_FN static inline __attribute__((device, always_inline))
#define HF_SHARED(name) static __attribute__((shared)) hf_u64 name
#define HF_CLOCK_KHZ(args) ((args)->clock ? (args)->clock : 100000)
typedef hf_u32 hf_wide __attribute__((vector_size(16), may_alias));

/* From the dispatch packet and not the hidden arguments, which a launch need not have. */
HF_FN hf_u32 hf_threads(void) {
    return ((const __attribute__((address_space(4))) unsigned short *)__builtin_amdgcn_dispatch_ptr())[2];
}
HF_FN hf_u32 hf_blocks(void) {
    return ((const __attribute__((address_space(4))) hf_u32 *)__builtin_amdgcn_dispatch_ptr())[3] / hf_threads();
}
#define HF_BLOCK __builtin_amdgcn_workgroup_id_x()
#define HF_BLOCKS hf_blocks()
#define HF_THREADS hf_threads()
#define HF_LANE __builtin_amdgcn_workitem_id_x()

HF_FN hf_u64 hf_load_system(HF_GLOBAL const hf_u64 *p) {
    return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
HF_FN void hf_store_system(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
HF_FN void hf_acquire_system(void) { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, ""); }
HF_FN void hf_release_system(void) { __builtin_amdgcn_fence(__ATOMIC_RELEASE, ""); }
HF_FN hf_u64 hf_load_device(HF_GLOBAL const hf_u64 *p) {
    return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
HF_FN void hf_store_device(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    __hip_atomic_store(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
HF_FN int hf_claim_device(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    hf_u64 none = 0;
    return __hip_atomic_compare_exchange_strong(p, &none, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
HF_FN int hf_arrive_device(HF_GLOBAL hf_u64 *p, hf_u32 n) {
    if (__hip_atomic_fetch_add(p, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) + 1 != n)
        return 0;
    hf_store_device(p, 0);
    return 1;
}
HF_FN void hf_barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
HF_FN hf_u64 hf_clock(void) { return __builtin_readsteadycounter(); }
HF_FN void hf_pause(void) { __builtin_amdgcn_s_sleep(8); }

#elif defined(__NVPTX__)
#define HF_FN static inline __attribute__((device, always_inline))
#define HF_SHARED(name) static __attribute__((shared)) hf_u64 name
#define HF_CLOCK_KHZ(args) 1000000
typedef hf_u32 hf_wide __attribute__((vector_size(16), may_alias));

#define HF_BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define HF_BLOCKS ((hf_u32)__nvvm_read_ptx_sreg_nctaid_x())
#define HF_THREADS __nvvm_read_ptx_sreg_ntid_x()
#define HF_LANE ((hf_u32)__nvvm_read_ptx_sreg_tid_x())

/* By instruction: clang's own atomics drop to weaker forms for this target. */
HF_FN hf_u64 hf_load_system(HF_GLOBAL const hf_u64 *p) {
    hf_u64 v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
HF_FN void hf_store_system(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
HF_FN void hf_acquire_system(void) { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
HF_FN void hf_release_system(void) { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
HF_FN hf_u64 hf_load_device(HF_GLOBAL const hf_u64 *p) {
    hf_u64 v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
HF_FN void hf_store_device(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
HF_FN int hf_claim_device(HF_GLOBAL hf_u64 *p, hf_u64 v) {
    hf_u64 was;
    asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(was) : "l"(p), "l"(0ull), "l"(v) : "memory");
    return was == 0;
}
HF_FN int hf_arrive_device(HF_GLOBAL hf_u64 *p, hf_u32 n) {
    hf_u64 before;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(p), "l"(1ull) : "memory");
    if (before + 1 != n)
        return 0;
    hf_store_device(p, 0);
    return 1;
}
HF_FN void hf_barrier(void) { __syncthreads(); }
HF_FN hf_u64 hf_clock(void) {
    hf_u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}
HF_FN void hf_pause(void) { asm volatile("nanosleep.u32 200;" ::: "memory"); }

#else
#include "platform_host.h"
#endif

#if defined(__AMDGCN__) || defined(__NVPTX__)
#define HF_KERNEL(name)                                                                                                \
    HF_FN void name##_block(const struct hf_args *args);                                                               \
    extern "C" __attribute__((global)) void name(struct hf_args by_value) { name##_block(&by_value); }                 \
    HF_FN void name##_block(const struct hf_args *args)
#define HF_HALVES(name, type, first, second)                                                                           \
    extern "C" __attribute__((global)) void name(struct type by_value) {                                               \
        first(&by_value);                                                                                              \
        second(&by_value);                                                                                             \
    }
#define HF_GRID
#define HF_THIS_GRID
#define HF_UNROLL _Pragma("unroll")
#define HF_LANES(lane) for (hf_u32 lane = HF_LANE, hf_once = 1; hf_once; hf_once = 0)
#define HF_SHARE(i, n, first, step) for (hf_u64 i = (first); i < (n); i += (step))
#endif

#endif
