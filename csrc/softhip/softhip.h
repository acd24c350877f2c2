// softhip: a HIP device in software, and how a test steers it. HIP's own functions are found by softhip_find (in process)
// or by dlsym (libamdhip64.so built from the same source), as the functions below are.
//
// Every function is safe from any thread, but softhip_configure and softhip_reset end the world under whoever is still
// using it: call them when nobody is. Text results are cut to n bytes, always ended by a zero byte; the whole length
// (without that byte) is returned, as snprintf does.
#ifndef SOFTHIP_H
#define SOFTHIP_H

#include <stddef.h>
#include <stdint.h>

#ifdef SOFTHIP_SHARED
#define SOFTHIP_API __attribute__((visibility("default")))
#else
#define SOFTHIP_API __attribute__((visibility("hidden")))
#endif

// softhip_configure ends the world and begins one with these settings: words "key=value" apart by spaces, empty for the
// defaults. 0; or -1 when a setting is wrong or operations are parked or held, with the reason in softhip_error.
//
//   devices=1  hip=7.15.26333  arch=gfx1151  name=...  integrated=0|1  memory_mb=16384
//   hw_queues=4              hardware queues a priority pool (GPU_MAX_HW_QUEUES)
//   ignore_priority=0|1      streams of every priority share the normal pool
//   sdma_rings=2             1: both directions share one
//   blit_bytes=16384         a copy up to here runs on the stream's own queue (0 below hip=7)
//   copy_blocks=0|1          a copy behind unfinished work blocks its caller (6.x)
//   stream_lock=0|1          hipStreamSynchronize holds the stream's lock while it waits
//   stream_wait=1|0|error    attribute 10013; waits work only with 1
//   write_releases=1|0       0: a stream's write never releases another stream's wait, a host store does
//   relaxed_waits=1|0        1: a wait does not acquire: the next blit or kernel may read stale non-coherent memory
//   capture_values=run|refuse|record   a value operation on a capturing stream
//   copy_latency_us=0  copy_mb_s=0     modelled copies; 0 is as fast as memcpy
//   no_gpu=0|100|101         no device, with either runtime's codes
//   missing=a,b              names softhip_find does not find
//   visible=1,0              ROCR_VISIBLE_DEVICES
//   host_coherent=0|1        HIP_HOST_COHERENT
//   dirty=0|1                new memory holds junk, as HIP's may
SOFTHIP_API int softhip_configure(const char *settings);

// softhip_reset ends the world whatever its state: parked operations are dropped, threads joined, memory unmapped. The
// next call begins one with the same settings.
SOFTHIP_API void softhip_reset(void);

// softhip_error tells why this thread's last softhip call failed.
SOFTHIP_API const char *softhip_error(void);

// softhip_find resolves a HIP or softhip function by name; NULL where this version lacks it. ctx is unused.
SOFTHIP_API void *softhip_find(void *ctx, const char *name);

// softhip_twin is a kernel's host build: called once a launch, on the queue's thread, with the launch's one argument
// struct. Device addresses in the struct (its aligned 64-bit words) are replaced by addresses that the host may touch.
typedef void softhip_twin(const void *args, unsigned blocks, unsigned threads);

// softhip_kernel registers the twin of kernel name, whose parameters are one struct of bytes. Registrations outlive
// softhip_configure; a NULL twin withdraws one.
SOFTHIP_API int softhip_kernel(const char *name, softhip_twin *twin, unsigned bytes);

// softhip_kernel_args is softhip_kernel for a kernel with count parameters of these sizes; the twin gets them packed as
// in a kernel's argument segment: each aligned to its size, 8 at most.
SOFTHIP_API int softhip_kernel_args(const char *name, softhip_twin *twin, const unsigned *sizes, unsigned count);

// softhip_pause is what a twin calls in each turn of a loop that waits: it gives the core away. When the world ends it
// does not return: the twin is left by longjmp.
SOFTHIP_API void softhip_pause(void);

// softhip_view gives the address at which a twin may touch device memory p; p itself where that is the same.
SOFTHIP_API void *softhip_view(void *p);

// softhip_queue gives the number of the queue behind a stream; softhip_ring that of a device's SDMA ring. -1: none.
SOFTHIP_API int softhip_queue(void *stream);
SOFTHIP_API int softhip_ring(int device, int index);

// softhip_hold lets the operation under way end and no further one begin; softhip_step lets so many begin; then
// softhip_release lets all. -1: no such queue.
SOFTHIP_API int softhip_hold(int queue);
SOFTHIP_API int softhip_step(int queue, unsigned operations);
SOFTHIP_API int softhip_release(int queue);

// softhip_settle returns 0 once no queue can move by itself: each is empty, held, or parked; -1 after timeout_ms.
SOFTHIP_API int softhip_settle(unsigned timeout_ms);

// softhip_fault plants one failure, told as words "key=value"; each happens once unless times=n (0: always).
//
//   call=hipMalloc nth=3 code=2          the third call from now fails, without effect
//   call=hipMalloc us=1000 code=0        the next call blocks, and then works
//   async=719 nth=2                      the second operation from now fails; its device's calls then give the code
//   copy=drop|lost|late nth=1 us=1000    bytes never move; they move but the copy never ends; both come after us
//                                        (0: at softhip_land)
//   queue=3 hang=1                       that queue's next operation never ends
//   device=0 lost=1 code=719             now: every call gives the code, everything parked ends
SOFTHIP_API int softhip_fault(const char *spec);
SOFTHIP_API void softhip_land(void);

// softhip_parked describes each queue with work: what it does, waits for, and what stands behind it.
SOFTHIP_API int softhip_parked(char *text, size_t n);
// softhip_leaks lists what is still allocated, created or registered, a line each.
SOFTHIP_API int softhip_leaks(char *text, size_t n);
// softhip_reports lists misuse seen since the world began: a free under an operation, a touch of freed memory.
SOFTHIP_API int softhip_reports(char *text, size_t n);

// One operation that a queue has finished.
typedef struct softhip_op {
    uint64_t number; // from 1, in order of completion
    uint64_t stream; // hipStream_t; 0 the null stream
    uint64_t queued_ns, start_ns, end_ns; // CLOCK_MONOTONIC
    uint64_t address, bytes, value;
    int32_t device, queue;
    int32_t code;    // 0, or how it failed
    int32_t ring;    // 1: on an SDMA ring
    char name[32];
} softhip_op;

// softhip_trace copies the newest operations, oldest first, and returns how many; the world keeps 8,192.
SOFTHIP_API int softhip_trace(softhip_op *ops, int max);

#endif
