/*
 * The kernels gate: stage hands a call's input to the host, collect takes its result back. One source for amdgcn, PTX and the
 * host (C11 or C++17), in their common subset. Contracts and the argument for their order: docs/kernels.md.
 */
#include "mailbox.h"
#include "platform.h"

/* Why done says failed; a reason that is not ours reads as a failed call. */
HF_FN hf_u64 hf_reason(hf_u64 done) {
    hf_u64 reason = (done & ~HF_FAILED) >> HF_REASON_SHIFT;
    return reason - 1 < HF_REASON_END - 1 ? reason : (hf_u64)HF_REASON_CALL;
}

/* The first failure wins, on whichever block, and is the only one told to the host. */
HF_FN void hf_fail(HF_GLOBAL struct hf_device *device, HF_GLOBAL struct hf_host *host, hf_u64 sequence, hf_u64 reason) {
    hf_u64 failure = HF_FAILED | reason << HF_REASON_SHIFT | (sequence & HF_SEQUENCE);
    if (hf_claim_device(&device->poison, failure))
        hf_store_system(&host->failed, failure);
}

/* Waits for done of a sequence; false once it has failed instead. What the host wrote before done may be read after. */
HF_FN int hf_wait(const struct hf_args *args, hf_u64 sequence, hf_u64 awaited) {
    HF_GLOBAL struct hf_device *device = HF_PTR(struct hf_device, args->device);
    HF_GLOBAL struct hf_host *host = HF_PTR(struct hf_host, args->host);
    hf_u64 limit = args->timeout ? (args->timeout / 1000000 + 1) * HF_CLOCK_KHZ(args) : 0;
    hf_u64 start = hf_clock();
    for (;;) {
        hf_u64 now, done = hf_load_system(&host->done[awaited % HF_RING]);
        if (done & HF_FAILED) {
            hf_fail(device, host, sequence, hf_reason(done));
            return 0;
        }
        if (done >= awaited) /* a later lap's too: this stream was late to look */
            break;
        if (hf_load_system(&host->abort)) {
            hf_fail(device, host, sequence, HF_REASON_ABORT);
            return 0;
        }
        if (hf_load_device(&device->poison)) /* another block has given up */
            return 0;
        now = hf_clock();
        if (limit && now > start && now - start >= limit) { /* a clock that steps back ends nothing */
            hf_fail(device, host, sequence, HF_REASON_TIMEOUT);
            return 0;
        }
        hf_pause();
    }
    hf_acquire_system();
    return 1;
}

/* Lane `first` of `step` copies its share: 16 bytes at a time where both sides can be aligned alike, else bytes. */
HF_FN void hf_copy(hf_u64 to, hf_u64 from, hf_u64 bytes, hf_u64 first, hf_u64 step) {
    hf_u64 head = bytes, wide = 0;
    if (((to ^ from) & 15) == 0) {
        head = (0 - to) & 15;
        if (head > bytes)
            head = bytes;
        wide = (bytes - head) / 16;
    }
    HF_SHARE(i, head, first, step)
        HF_PTR(unsigned char, to)[i] = HF_PTR(const unsigned char, from)[i];
    HF_SHARE(i, wide, first, step)
        HF_PTR(hf_wide, to + head)[i] = HF_PTR(const hf_wide, from + head)[i];
    to += head + wide * 16;
    from += head + wide * 16;
    HF_SHARE(i, bytes - head - wide * 16, first, step)
        HF_PTR(unsigned char, to)[i] = HF_PTR(const unsigned char, from)[i];
}

/* Every piece between the caller's memory and the window, by all lanes of all blocks together. */
HF_FN void hf_pieces(const struct hf_args *args, hf_u64 window, int down, hf_u64 first, hf_u64 step) {
    HF_GLOBAL const struct hf_piece *list = HF_PTR(const struct hf_piece, args->list);
    hf_u32 i;
    for (i = 0; i < args->pieces; i++) {
        hf_u64 memory = args->memory + i * args->stride, slab = window + i * args->pitch, bytes = args->bytes;
        if (list) {
            memory = args->memory + list[i].memory;
            slab = window + list[i].slab;
            bytes = list[i].bytes;
        }
        if (down)
            hf_copy(slab, memory, bytes, first, step);
        else
            hf_copy(memory, slab, bytes, first, step);
    }
}

/* The sequence that this stage may fill its window and slot for, or 0 to do nothing. */
HF_FN hf_u64 hf_stage_begin(const struct hf_args *args) {
    HF_GLOBAL struct hf_device *device = HF_PTR(struct hf_device, args->device);
    hf_u64 sequence = hf_load_device(&device->epoch) + 1;
    /* The host ends calls in order: done of the window's last user says that the slot's is done too. */
    hf_u64 lag = args->pieces || args->lengths ? HF_WINDOWS : HF_RING;
    if (hf_load_device(&device->poison))
        return 0;
    if (sequence > lag && !hf_wait(args, sequence, sequence - lag))
        return 0;
    return sequence;
}

HF_KERNEL(hf_stage) {
    HF_SHARED(sequence);
    HF_GLOBAL struct hf_device *device = HF_PTR(struct hf_device, args->device);
    HF_GLOBAL struct hf_host *host = HF_PTR(struct hf_host, args->host);
    HF_LANES(lane) {
        if (lane == 0)
            sequence = hf_stage_begin(args);
    }
    hf_barrier();
    if (sequence == 0) /* this block never arrives, so no block is the last: nothing is published */
        return;
    HF_LANES(lane) {
        hf_u64 window = args->slab + sequence % HF_WINDOWS * args->window;
        hf_u64 first = (hf_u64)HF_BLOCK * HF_THREADS + lane, step = (hf_u64)HF_BLOCKS * HF_THREADS;
        hf_pieces(args, window, 1, first, step);
        if (args->lengths)
            hf_copy(window + args->lengths_at, args->lengths, (hf_u64)args->world * 4, first, step);
        hf_release_system(); /* each lane its own stores: nothing later is asked to carry them out for it */
    }
    hf_barrier();
    HF_LANES(lane) {
        if (lane == 0 && hf_arrive_device(&device->stage_arrived, HF_BLOCKS)) {
            host->descriptor[sequence % HF_RING] = args->descriptor;
            hf_store_system(&host->ready[sequence % HF_RING], sequence);
            hf_store_device(&device->epoch, sequence);
        }
    }
}

/* The sequence whose result this collect may copy, or 0 to do nothing. */
HF_FN hf_u64 hf_collect_begin(const struct hf_args *args) {
    HF_GLOBAL struct hf_device *device = HF_PTR(struct hf_device, args->device);
    hf_u64 epoch = hf_load_device(&device->epoch);
    if (hf_load_device(&device->poison) || epoch <= args->back)
        return 0;
    return hf_wait(args, epoch - args->back, epoch - args->back) ? epoch - args->back : 0;
}

HF_KERNEL(hf_collect) {
    HF_SHARED(sequence);
    HF_GLOBAL struct hf_device *device = HF_PTR(struct hf_device, args->device);
    HF_GLOBAL struct hf_host *host = HF_PTR(struct hf_host, args->host);
    HF_LANES(lane) {
        if (lane == 0)
            sequence = hf_collect_begin(args);
    }
    hf_barrier();
    if (sequence == 0)
        return;
    HF_LANES(lane) {
        hf_u64 window = args->slab + sequence % HF_WINDOWS * args->window;
        hf_acquire_system(); /* each lane for its own reads, as in stage */
        hf_pieces(args, window, 0, (hf_u64)HF_BLOCK * HF_THREADS + lane, (hf_u64)HF_BLOCKS * HF_THREADS);
    }
    hf_barrier();
    HF_LANES(lane) {
        if (lane == 0 && hf_arrive_device(&device->collect_arrived, HF_BLOCKS))
            hf_store_system(&host->collected, sequence);
    }
}

#include "calls.hip"
