/*
 * Layout that the kernels of mailbox.hip, a host that launches them and Go share. Addresses are 64 bit. Contracts: docs/kernels.md.
 * Includes nothing, and is C11, C++17, HIP and CUDA.
 */
#ifndef HF_MAILBOX_H
#define HF_MAILBOX_H

typedef __UINT64_TYPE__ hf_u64;
typedef __UINT32_TYPE__ hf_u32;

enum {
    HF_RING = 256,  /* slots of the rings: slot of a sequence is its remainder */
    HF_WINDOWS = 2, /* windows of a slab: that of a sequence is its remainder */
    HF_LINE = 64,   /* bytes that are kept to one writer */
    HF_REASON_SHIFT = 56
};

/* A failure in one word: HF_FAILED | reason << HF_REASON_SHIFT | sequence. In done, in poison and in failed. */
#define HF_FAILED (1ull << 62)
#define HF_SEQUENCE ((1ull << HF_REASON_SHIFT) - 1)

enum {
    HF_REASON_CALL = 1,     /* the host's half of the call failed: also what an unknown reason reads as */
    HF_REASON_ABORT = 2,    /* the abort word was set */
    HF_REASON_TIMEOUT = 3,  /* the device waited for as long as it may */
    HF_REASON_RELEASED = 4, /* the sequence named a descriptor of a released plan */
    HF_REASON_END
};

/* In device memory, zeroed before the first launch; the kernels alone touch it. A line a word: each has its own writers. */
struct hf_device {
    hf_u64 epoch; /* last sequence staged */
    hf_u64 epoch_pad[7];
    hf_u64 poison; /* 0, or the first failure: the epoch stays, and later launches do nothing */
    hf_u64 poison_pad[7];
    hf_u64 stage_arrived; /* blocks of the running stage that are done; apart from collect's */
    hf_u64 stage_pad[7];
    hf_u64 collect_arrived;
    hf_u64 collect_pad[7];
};

/* In pinned, mapped, coherent host memory, zeroed. The first page the device writes, the second the host. Plain stores only. */
struct hf_host {
    hf_u64 ready[HF_RING];      /* sequence that is staged; its input and descriptor are there once this is seen */
    hf_u64 descriptor[HF_RING]; /* what the stage of that sequence was launched with */

    hf_u64 done[HF_RING]; /* sequence whose result is in the slab, in order; or a failure */
    hf_u64 abort;         /* not 0: every waiting kernel fails */
    hf_u64 abort_pad[7];

    hf_u64 failed; /* written by the device, once: its first failure. 0 before */
    hf_u64 failed_pad[7];
    hf_u64 collected; /* written by the device: last sequence whose result was copied out */
    hf_u64 collected_pad[7];
};

/* One of a list of pieces, in memory that the device reads. */
struct hf_piece {
    hf_u64 memory; /* bytes from args.memory */
    hf_u64 slab;   /* bytes from the start of the window */
    hf_u64 bytes;
};

/* The one argument of each kernel, by value. */
struct hf_args {
    hf_u64 device;     /* struct hf_device */
    hf_u64 host;       /* struct hf_host, as the device sees it */
    hf_u64 slab;       /* window 0 of the slab, as the device sees it: what stage fills, or what collect empties */
    hf_u64 window;     /* bytes from window 0 to window 1 */
    hf_u64 memory;     /* the caller's memory: input of stage, output of collect */
    hf_u64 bytes;      /* of a piece */
    hf_u64 stride;     /* from piece to piece in the caller's memory */
    hf_u64 pitch;      /* from piece to piece in the slab */
    hf_u64 list;       /* 0; or struct hf_piece[pieces], which then says it all: bytes, stride and pitch are not read */
    hf_u64 timeout;    /* most nanoseconds of a wait, rounded up to a millisecond; 0: no bound but abort */
    hf_u64 descriptor; /* stage: copied to the ring */
    hf_u64 lengths;    /* stage: 0; or int32[world] in the caller's memory, copied to the window at lengths_at */
    hf_u64 lengths_at;
    hf_u32 pieces; /* 0: nothing to copy, still a call */
    hf_u32 world;
    hf_u32 clock; /* kHz of an AMD device's wall clock (attribute 10017); 0: 100,000. Other targets count nanoseconds */
    hf_u32 back;  /* collect: how many sequences behind the last one staged; stage: 0 */
};

#ifdef __cplusplus
#define HF_ASSERT(x) static_assert(x, #x)
#else
#define HF_ASSERT(x) _Static_assert(x, #x)
#endif
#define HF_AT(type, field, offset) HF_ASSERT(__builtin_offsetof(struct type, field) == (offset))

HF_AT(hf_device, epoch, 0);
HF_AT(hf_device, poison, 64);
HF_AT(hf_device, stage_arrived, 128);
HF_AT(hf_device, collect_arrived, 192);
HF_ASSERT(sizeof(struct hf_device) == 256);
HF_AT(hf_host, ready, 0);
HF_AT(hf_host, descriptor, 2048);
HF_AT(hf_host, done, 4096);
HF_AT(hf_host, abort, 6144);
HF_AT(hf_host, failed, 6208);
HF_AT(hf_host, collected, 6272);
HF_ASSERT(sizeof(struct hf_host) == 6336);
HF_ASSERT(sizeof(struct hf_piece) == 24);
HF_AT(hf_args, device, 0);
HF_AT(hf_args, host, 8);
HF_AT(hf_args, slab, 16);
HF_AT(hf_args, window, 24);
HF_AT(hf_args, memory, 32);
HF_AT(hf_args, bytes, 40);
HF_AT(hf_args, stride, 48);
HF_AT(hf_args, pitch, 56);
HF_AT(hf_args, list, 64);
HF_AT(hf_args, timeout, 72);
HF_AT(hf_args, descriptor, 80);
HF_AT(hf_args, lengths, 88);
HF_AT(hf_args, lengths_at, 96);
HF_AT(hf_args, pieces, 104);
HF_AT(hf_args, world, 108);
HF_AT(hf_args, clock, 112);
HF_AT(hf_args, back, 116);
HF_ASSERT(sizeof(struct hf_args) == 120);

#ifdef HF_HOST_BUILD
/*
 * The host build of the kernels: one launch, blocks one after the other, lanes as loops between barriers. args is a struct hf_args.
 * Returns when the launch has ended; waits by calling softhip_pause between looks.
 */
#ifdef __cplusplus
extern "C" {
#endif
void hf_stage__host(const void *args, unsigned blocks, unsigned threads);
void hf_collect__host(const void *args, unsigned blocks, unsigned threads);
void softhip_pause(void); /* yields the processor, unless a software device defines its own */
#ifdef __cplusplus
}
#endif
#endif

#endif
