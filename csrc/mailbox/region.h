/*
 * Layout that the kernels of calls.hip, the proxy that posts for them, the peers' HCAs and Go share. Contracts: docs/mailbox.md.
 * The kernels touch only what is here, and a peer's HCA only what says so.
 */
#ifndef HF_REGION_H
#define HF_REGION_H
#include "mailbox.h"

enum {
    HF_RANKS = 64,  /* most ranks of a group */
    HF_SLOTS = 2,   /* of a target: slot of an epoch is its remainder */
    HF_STRIPES = 8, /* most stripes of a payload */
    HF_PACK = 16,   /* bytes that are never cut; those of the last pack may be fewer */
    HF_GROUP = 0,   /* class of the calls in which each rank waits for every peer */
    HF_PAIR = 1,    /* class of the calls of two ranks */
    HF_CLASSES
};

/*
 * Targets are numbered by rank: a peer's number is the pair with it, the rank's own number is the group. Each has its own epochs,
 * slots and flags, because a call of one says nothing about where a rank is in the calls of another.
 */

/* A flag in one word: what the call is, by its caller's tag, and the low bits of its target's epoch. */
#define HF_FLAG_SHIFT 39
#define HF_FLAG_EPOCH ((1ull << HF_FLAG_SHIFT) - 1)

/* Why a wait failed. Poison and failed are HF_FAILED | cause << HF_REASON_SHIFT | epoch. */
enum {
    HF_CAUSE_ABORT = 1,   /* the abort word was set */
    HF_CAUSE_TIMEOUT = 2, /* the flag was not there in time */
    HF_CAUSE_DESYNC = 3   /* the flag is of another call */
};

/* As in fabric: DType and ReduceOp. */
enum { HF_F16 = 5, HF_BF16 = 6, HF_F32 = 7 };
enum { HF_SUM = 1, HF_PROD = 2, HF_MAX = 3, HF_MIN = 4, HF_AVG = 5 };

/* A target's words in device memory. A line a word: each has its own writers. */
struct hf_target {
    hf_u64 epoch; /* last call that has ended */
    hf_u64 epoch_pad[7];
    hf_u64 staged; /* blocks of the running launch whose input is in the slot */
    hf_u64 staged_pad[7];
    hf_u64 left; /* blocks whose output is written: apart, for a block may be here before another has staged */
    hf_u64 left_pad[7];
};

/* In device memory, zeroed before the first launch; the kernels alone touch it. */
struct hf_mailbox {
    hf_u64 poison; /* 0, or the first failure of any target: epochs stay, and later launches do nothing */
    hf_u64 poison_pad[7];
    struct hf_target target[HF_RANKS];
};

/* A target's line. Written by the device; bytes and flag, of each slot apart, before epoch, which is a level: it may skip one. */
struct hf_doorbell {
    hf_u64 epoch;            /* last call whose payload is in its send slot */
    hf_u64 bytes[HF_SLOTS];  /* of that slot's payload */
    hf_u64 flag[HF_SLOTS];   /* what the peers' flags for it are set to */
    hf_u64 ended;            /* last call that has ended on this rank */
    hf_u64 pad[2];
};

/* The first wait that failed. Written by the device, failed last. */
struct hf_record {
    hf_u64 failed; /* 0 before */
    hf_u64 target;
    hf_u64 peer;
    hf_u64 stripe;
    hf_u64 seen;    /* the flag, as last read */
    hf_u64 awaited; /* the flag, as it should be */
    hf_u64 microseconds;
    hf_u64 pad;
};

/* What begins a rank's region: pinned, mapped, coherent host memory, whole pages, zeroed. Each page has one kind of writer. */
struct hf_region {
    struct hf_doorbell doorbell[HF_RANKS];
    struct hf_record record;
    hf_u64 record_pad[504];
    hf_u64 abort; /* written by the host; not 0: every wait fails */
    hf_u64 abort_pad[511];
    hf_u64 flag[HF_CLASSES][HF_SLOTS][HF_RANKS][HF_STRIPES]; /* written by the peers' HCAs: of a call from that rank, each stripe */
};

/*
 * Behind it, for a world of so many ranks and slots of so many bytes, a multiple of 4096 and at most 512 MiB: recv, written by the
 * peers' HCAs and for each class by source; then send, written by the device and for each target. From the flags to send peers write.
 */
#define HF_RECV_AT(world, slot_bytes, klass, source, slot)                                                             \
    (sizeof(struct hf_region) + (((hf_u64)(klass) * (world) + (source)) * HF_SLOTS + (slot)) * (slot_bytes))
#define HF_SEND_AT(world, slot_bytes, target, slot) HF_RECV_AT(world, slot_bytes, HF_CLASSES, target, slot)
#define HF_REGION_BYTES(world, slot_bytes) HF_SEND_AT(world, slot_bytes, world, 0)

/* The one argument of each kernel, by value. */
struct hf_call {
    hf_u64 mailbox; /* struct hf_mailbox */
    hf_u64 region;  /* struct hf_region, as the device sees it */
    hf_u64 in;      /* the caller's memory, at any address */
    hf_u64 out;     /* gather: a block a rank; in may be this rank's own. all-reduce: may be in */
    hf_u64 bytes;   /* of in; at most slot_bytes. all-reduce: whole elements */
    hf_u64 slot_bytes;
    hf_u64 timeout; /* most nanoseconds of the wait, rounded up to a millisecond; 0: no bound but abort */
    hf_u32 world;   /* 2 to HF_RANKS */
    hf_u32 rank;
    hf_u32 target;  /* exchange: the peer; else the own rank */
    hf_u32 stripes; /* 1 to HF_STRIPES */
    hf_u32 dtype;   /* all-reduce: HF_F16, HF_BF16 or HF_F32 */
    hf_u32 reduce;  /* all-reduce: HF_SUM and so on */
    hf_u32 tag;     /* 25 bits of what the ranks must agree on; a peer's call with another is refused */
    hf_u32 clock;   /* kHz of an AMD device's wall clock, as in struct hf_args */
};

HF_AT(hf_target, epoch, 0);
HF_AT(hf_target, staged, 64);
HF_AT(hf_target, left, 128);
HF_ASSERT(sizeof(struct hf_target) == 192);
HF_AT(hf_mailbox, poison, 0);
HF_AT(hf_mailbox, target, 64);
HF_ASSERT(sizeof(struct hf_mailbox) == 12352);
HF_AT(hf_doorbell, epoch, 0);
HF_AT(hf_doorbell, bytes, 8);
HF_AT(hf_doorbell, flag, 24);
HF_AT(hf_doorbell, ended, 40);
HF_ASSERT(sizeof(struct hf_doorbell) == 64);
HF_AT(hf_record, failed, 0);
HF_AT(hf_record, target, 8);
HF_AT(hf_record, peer, 16);
HF_AT(hf_record, stripe, 24);
HF_AT(hf_record, seen, 32);
HF_AT(hf_record, awaited, 40);
HF_AT(hf_record, microseconds, 48);
HF_ASSERT(sizeof(struct hf_record) == 64);
HF_AT(hf_region, doorbell, 0);
HF_AT(hf_region, record, 4096);
HF_AT(hf_region, abort, 8192);
HF_AT(hf_region, flag, 12288);
HF_ASSERT(sizeof(struct hf_region) == 28672);
HF_ASSERT(HF_RECV_AT(3, 8192, HF_PAIR, 2, 1) == 28672 + 11 * 8192);
HF_ASSERT(HF_SEND_AT(3, 8192, 2, 1) == 28672 + 17 * 8192);
HF_ASSERT(HF_REGION_BYTES(3, 8192) == 28672 + 18 * 8192);
HF_AT(hf_call, mailbox, 0);
HF_AT(hf_call, region, 8);
HF_AT(hf_call, in, 16);
HF_AT(hf_call, out, 24);
HF_AT(hf_call, bytes, 32);
HF_AT(hf_call, slot_bytes, 40);
HF_AT(hf_call, timeout, 48);
HF_AT(hf_call, world, 56);
HF_AT(hf_call, rank, 60);
HF_AT(hf_call, target, 64);
HF_AT(hf_call, stripes, 68);
HF_AT(hf_call, dtype, 72);
HF_AT(hf_call, reduce, 76);
HF_AT(hf_call, tag, 80);
HF_AT(hf_call, clock, 84);
HF_ASSERT(sizeof(struct hf_call) == 88);

#ifdef HF_HOST_BUILD
/* As in mailbox.h, but args is a struct hf_call, and all blocks put their input in before the first waits. */
#ifdef __cplusplus
extern "C" {
#endif
void hf_gather__host(const void *args, unsigned blocks, unsigned threads);
void hf_all_reduce__host(const void *args, unsigned blocks, unsigned threads);
void hf_exchange__host(const void *args, unsigned blocks, unsigned threads);
#ifdef __cplusplus
}
#endif
#endif

#endif
