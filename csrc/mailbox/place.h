/* Where a call's things lie, and its packs: the caller's memory is at any address, a slot's packs are aligned and whole. */
#ifndef HF_PLACE_H
#define HF_PLACE_H
#include "region.h"
#include "platform.h"

HF_FN HF_GLOBAL struct hf_mailbox *hf_mailbox_of(const struct hf_call *args) {
    return HF_PTR(struct hf_mailbox, args->mailbox);
}
HF_FN HF_GLOBAL struct hf_region *hf_region_of(const struct hf_call *args) {
    return HF_PTR(struct hf_region, args->region);
}
HF_FN HF_GLOBAL struct hf_target *hf_target_of(const struct hf_call *args) {
    return &hf_mailbox_of(args)->target[args->target];
}
HF_FN hf_u32 hf_class(const struct hf_call *args) { return args->target == args->rank ? HF_GROUP : HF_PAIR; }
HF_FN hf_u32 hf_sources(const struct hf_call *args) { return args->target == args->rank ? args->world : 1; }
/* The first of the sources: they follow each other. */
HF_FN hf_u32 hf_first_source(const struct hf_call *args) { return args->target == args->rank ? 0 : args->target; }
HF_FN hf_u64 hf_recv(const struct hf_call *args, hf_u64 epoch, hf_u32 source) {
    return args->region + HF_RECV_AT(args->world, args->slot_bytes, hf_class(args), source, epoch % HF_SLOTS);
}
HF_FN hf_u64 hf_send(const struct hf_call *args, hf_u64 epoch) {
    return args->region + HF_SEND_AT(args->world, args->slot_bytes, args->target, epoch % HF_SLOTS);
}
HF_FN hf_u64 hf_flag(const struct hf_call *args, hf_u64 epoch) {
    return (hf_u64)args->tag << HF_FLAG_SHIFT | (epoch & HF_FLAG_EPOCH);
}


/* At any address, in as few accesses as the target has for that. */
typedef hf_u32 hf_loose __attribute__((vector_size(16), may_alias, aligned(1)));

HF_FN hf_u64 hf_packs(const struct hf_call *args) { return (args->bytes + HF_PACK - 1) / HF_PACK; }
HF_FN hf_u64 hf_pack_bytes(const struct hf_call *args, hf_u64 p) {
    hf_u64 left = args->bytes - p * HF_PACK;
    return left < HF_PACK ? left : (hf_u64)HF_PACK;
}
/* The first bytes of a pack from the caller's memory; the others are 0. */
HF_FN hf_wide hf_load_pack(hf_u64 from, hf_u64 bytes) {
    hf_wide pack = {0, 0, 0, 0};
    int i;
    if (bytes == HF_PACK && from % HF_PACK == 0)
        return *HF_PTR(const hf_wide, from);
    if (bytes == HF_PACK)
        return (hf_wide)*HF_PTR(const hf_loose, from);
    HF_UNROLL
    for (i = 0; i < HF_PACK; i++)
        if ((hf_u64)i < bytes)
            pack[i / 4] |= (hf_u32)HF_PTR(const unsigned char, from)[i] << i % 4 * 8;
    return pack;
}
/* The first bytes of a pack to the caller's memory. */
HF_FN void hf_store_pack(hf_u64 to, hf_wide pack, hf_u64 bytes) {
    int i;
    if (bytes == HF_PACK && to % HF_PACK == 0) {
        *HF_PTR(hf_wide, to) = pack;
        return;
    }
    if (bytes == HF_PACK) {
        *HF_PTR(hf_loose, to) = (hf_loose)pack;
        return;
    }
    HF_UNROLL
    for (i = 0; i < HF_PACK; i++)
        if ((hf_u64)i < bytes)
            HF_PTR(unsigned char, to)[i] = (unsigned char)(pack[i / 4] >> i % 4 * 8);
}

#endif
