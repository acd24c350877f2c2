/*
 * The mailbox: a launch is a call. Its kernel puts the input into registered memory, rings the proxy, waits for the flags that
 * the peers' HCAs write, and takes what they brought. Part of mailbox.hip. Contracts and proofs: docs/mailbox.md.
 *
 * A kernel has two halves, and a block waits in the second only: where blocks follow each other, all put first.
 */
#include "sum.h"

enum { HF_LOOKS = 16 }; /* looks at a flag for each at abort and clock, which cost as much as a flag does */

/* The epoch of this launch, the same for all its blocks until all have left; or 0 to do nothing. */
HF_FN hf_u64 hf_epoch(const struct hf_call *args) {
    if (hf_load_device(&hf_mailbox_of(args)->poison))
        return 0;
    return hf_load_device(&hf_target_of(args)->epoch) + 1;
}

/* The first failure wins, on whichever lane, and is the only one told to the host. */
HF_FN void hf_call_fail(const struct hf_call *args, hf_u64 epoch, hf_u64 cause, hf_u32 peer, hf_u32 stripe, hf_u64 seen, hf_u64 ticks) {
    HF_GLOBAL struct hf_record *record = &hf_region_of(args)->record;
    hf_u64 failure = HF_FAILED | cause << HF_REASON_SHIFT | (epoch & HF_SEQUENCE);
    if (!hf_claim_device(&hf_mailbox_of(args)->poison, failure))
        return;
    record->target = args->target;
    record->peer = peer;
    record->stripe = stripe;
    record->seen = seen;
    record->awaited = hf_flag(args, epoch);
    record->microseconds = ticks * 1000 / HF_CLOCK_KHZ(args);
    hf_store_system(&record->failed, failure);
}

/* Waits for one flag; false once the call has failed instead. */
HF_FN int hf_await(const struct hf_call *args, hf_u64 epoch, hf_u32 peer, hf_u32 stripe, hf_u64 start) {
    HF_GLOBAL struct hf_region *region = hf_region_of(args);
    HF_GLOBAL const hf_u64 *flag = &region->flag[hf_class(args)][epoch % HF_SLOTS][peer][stripe];
    hf_u64 limit = args->timeout ? (args->timeout / 1000000 + 1) * HF_CLOCK_KHZ(args) : 0;
    hf_u64 awaited = hf_flag(args, epoch);
    hf_u32 turn;
    for (turn = 0;; turn++) {
        hf_u64 cause = 0, now, seen = hf_load_system(flag);
        if (seen == awaited)
            return 1;
        if (((seen - awaited) & HF_FLAG_EPOCH) <= HF_FLAG_EPOCH / 2) { /* not an earlier one; numbers wrap */
            cause = HF_CAUSE_DESYNC; /* of this epoch, of another call; or of an epoch that waits for this one */
        } else if (turn % HF_LOOKS == 0) {
            if (hf_load_device(&hf_mailbox_of(args)->poison)) /* another lane has given up */
                return 0;
            now = hf_clock();
            if (hf_load_system(&region->abort))
                cause = HF_CAUSE_ABORT;
            else if (limit && now > start && now - start >= limit) /* a clock that steps back ends nothing */
                cause = HF_CAUSE_TIMEOUT;
        }
        if (cause) {
            now = hf_clock();
            hf_call_fail(args, epoch, cause, peer, stripe, seen, now > start ? now - start : 0);
            return 0;
        }
        hf_pause();
    }
}

/* Lane `first` of `step` waits for its share of the flags: each stripe of each peer. */
HF_FN int hf_await_share(const struct hf_call *args, hf_u64 epoch, hf_u64 start, hf_u32 first, hf_u32 step) {
    hf_u32 i;
    for (i = first; i < hf_sources(args) * args->stripes; i += step) {
        hf_u32 peer = hf_first_source(args) + i / args->stripes;
        if (peer != args->rank && !hf_await(args, epoch, peer, i % args->stripes, start))
            return 0;
    }
    return 1;
}

/* Lane `first` of `step` puts its packs into the slot. What a pack's lane does to it later, no other lane does. */
HF_FN void hf_put(const struct hf_call *args, hf_u64 epoch, hf_u64 first, hf_u64 step) {
    HF_SHARE(p, hf_packs(args), first, step)
        *HF_PTR(hf_wide, hf_send(args, epoch) + p * HF_PACK) = hf_load_pack(args->in + p * HF_PACK, hf_pack_bytes(args, p));
}

HF_FN void hf_copy_own(const struct hf_call *args, hf_u64 to, hf_u64 first, hf_u64 step) {
    if (to == args->in)
        return;
    HF_SHARE(p, hf_packs(args), first, step)
        hf_store_pack(to + p * HF_PACK, hf_load_pack(args->in + p * HF_PACK, hf_pack_bytes(args, p)), hf_pack_bytes(args, p));
}

/* All sources' packs at once: small payloads come in one trip over the bus, not one a source. */
HF_FN void hf_take(const struct hf_call *args, hf_u64 epoch, hf_u64 first, hf_u64 step) {
    hf_u32 packs = (hf_u32)hf_packs(args);
    HF_SHARE(i, (hf_u64)packs * hf_sources(args), first, step) {
        hf_u32 block = (hf_u32)i / packs, source = hf_first_source(args) + block;
        hf_u64 p = (hf_u32)i % packs;
        if (source != args->rank)
            hf_store_pack(args->out + block * args->bytes + p * HF_PACK, *HF_PTR(const hf_wide, hf_recv(args, epoch, source) + p * HF_PACK),
                          hf_pack_bytes(args, p));
    }
}

/* The first half: the input is in the slot, and the proxy knows. Returns the epoch, or 0. */
HF_FN hf_u64 hf_ring(const struct hf_call *args HF_GRID) {
    HF_SHARED(epoch);
    HF_LANES(lane) {
        if (lane == 0)
            epoch = hf_epoch(args);
    }
    hf_barrier();
    if (epoch == 0)
        return 0;
    HF_LANES(lane) {
        hf_put(args, epoch, (hf_u64)HF_BLOCK * HF_THREADS + lane, (hf_u64)HF_BLOCKS * HF_THREADS);
        hf_release_system(); /* each lane its own stores, as in stage */
    }
    hf_barrier();
    HF_LANES(lane) {
        if (lane == 0 && hf_arrive_device(&hf_target_of(args)->staged, HF_BLOCKS)) {
            HF_GLOBAL struct hf_doorbell *doorbell = &hf_region_of(args)->doorbell[args->target];
            doorbell->bytes[epoch % HF_SLOTS] = args->bytes;
            doorbell->flag[epoch % HF_SLOTS] = hf_flag(args, epoch);
            hf_store_system(&doorbell->epoch, epoch);
        }
    }
    return epoch;
}

/* Begins the second half: what each peer sent is there. Returns the epoch, or 0. */
HF_FN hf_u64 hf_arrival(const struct hf_call *args HF_GRID) {
    HF_SHARED(epoch);
    HF_SHARED(start); /* of the block: lanes may follow each other */
    HF_SHARED(failed);
    HF_LANES(lane) {
        if (lane == 0) {
            epoch = hf_epoch(args);
            start = hf_clock();
            failed = 0;
        }
    }
    hf_barrier();
    if (epoch == 0)
        return 0;
    HF_LANES(lane) {
        if (!hf_await_share(args, epoch, start, lane, HF_THREADS))
            failed = 1;
    }
    hf_barrier();
    return failed ? 0 : epoch; /* a block that failed does not leave: the epoch stays */
}

/* The second half. The last block to leave ends the call. */
HF_FN void hf_finish(const struct hf_call *args, int sums HF_GRID) {
    hf_u64 epoch = hf_arrival(args HF_THIS_GRID);
    if (epoch == 0)
        return;
    HF_LANES(lane) {
        hf_u64 first = (hf_u64)HF_BLOCK * HF_THREADS + lane, step = (hf_u64)HF_BLOCKS * HF_THREADS;
        hf_acquire_system(); /* each lane for its own reads, as in collect */
        if (sums)
            hf_sum(args, epoch, first, step);
        else
            hf_take(args, epoch, first, step);
    }
    hf_barrier();
    HF_LANES(lane) {
        if (lane == 0 && hf_arrive_device(&hf_target_of(args)->left, HF_BLOCKS)) {
            hf_store_system(&hf_region_of(args)->doorbell[args->target].ended, epoch);
            hf_store_device(&hf_target_of(args)->epoch, epoch);
        }
    }
}

HF_FN void hf_put_and_copy_own(const struct hf_call *args HF_GRID) {
    if (hf_ring(args HF_THIS_GRID)) {
        HF_LANES(lane) /* while the payload is under way */
            hf_copy_own(args, args->out + args->rank * args->bytes, (hf_u64)HF_BLOCK * HF_THREADS + lane, (hf_u64)HF_BLOCKS * HF_THREADS);
    }
}
HF_FN void hf_put_only(const struct hf_call *args HF_GRID) { (void)hf_ring(args HF_THIS_GRID); }
HF_FN void hf_finish_copy(const struct hf_call *args HF_GRID) { hf_finish(args, 0 HF_THIS_GRID); }
HF_FN void hf_finish_sum(const struct hf_call *args HF_GRID) { hf_finish(args, 1 HF_THIS_GRID); }

HF_HALVES(hf_gather, hf_call, hf_put_and_copy_own, hf_finish_copy)
HF_HALVES(hf_all_reduce, hf_call, hf_put_only, hf_finish_sum)
HF_HALVES(hf_exchange, hf_call, hf_put_only, hf_finish_copy)
