/*
 * Reductions as fabric/internal/reduce has them, bit for bit: in rank order, fp32 accumulators, rounded to nearest even once at the
 * end, subnormals kept, a NaN is the canonical one. No expression multiplies and adds: some compilers would fuse it.
 */
#ifndef HF_SUM_H
#define HF_SUM_H
#include "place.h"

enum { HF_AHEAD = 8 }; /* ranks whose packs are fetched at once */

HF_FN hf_u32 hf_bits(float f) {
    union {
        float f;
        hf_u32 u;
    } b;
    b.f = f;
    return b.u;
}
HF_FN float hf_float(hf_u32 u) {
    union {
        float f;
        hf_u32 u;
    } b;
    b.u = u;
    return b.f;
}

/* Exactly. A binary16's exponent is less by 112, subnormal or not, until it is all ones. */
HF_FN float hf_widen(hf_u32 bits, hf_u32 dtype) {
    hf_u32 sign = (bits & 0x8000) << 16, magnitude = bits & 0x7fff;
    if (dtype == HF_F32)
        return hf_float(bits);
    if (dtype == HF_BF16)
        return hf_float(bits << 16);
    return hf_float(sign | hf_bits(hf_float(magnitude << 13) * 0x1p112f) | (magnitude >= 0x7c00 ? 0x7f800000 : 0));
}

/* Rounds to nearest even. */
HF_FN hf_u32 hf_narrow(float f, hf_u32 dtype) {
    hf_u32 bits = hf_bits(f), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    int nan = magnitude > 0x7f800000;
    if (dtype == HF_F32)
        return nan ? 0x7fc00000 : bits;
    if (dtype == HF_BF16)
        return nan ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    if (nan)
        return 0x7e00;
    if (magnitude >= 0x477ff000) /* 65520, half way from 65504 to 65536 */
        return sign | 0x7c00;
    if (magnitude >= 0x38800000) { /* 2^-14, the smallest normal */
        magnitude -= (127 - 15) << 23;
        return sign | (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
    /* The last bit of numbers from 0.5 to 1 is 2^-24, that of a subnormal binary16: the sum rounds as needed. */
    return sign | (hf_bits(hf_float(magnitude) + 0.5f) - hf_bits(0.5f));
}

/* A NaN wins, and -0 is less than +0. */
HF_FN float hf_fold(float a, float b, hf_u32 reduce) {
    switch (reduce) {
    case HF_PROD:
        return a * b;
    case HF_MAX:
        return b != b || b > a ? b : b == a ? hf_float(hf_bits(a) & hf_bits(b)) : a;
    case HF_MIN:
        return b != b || b < a ? b : b == a ? hf_float(hf_bits(a) | hf_bits(b)) : a;
    default:
        return a + b;
    }
}

HF_FN hf_u32 hf_element(hf_wide pack, int i, hf_u32 dtype) {
    return dtype == HF_F32 ? pack[i] : pack[i / 2] >> i % 2 * 16 & 0xffff;
}

/* All ranks' packs p, of which own is this rank's, in one. dtype is a constant, or registers become memory. */
HF_FN hf_wide hf_combine(const struct hf_call *args, hf_u64 epoch, hf_u64 p, hf_wide own, hf_u32 dtype) {
    const int elements = dtype == HF_F32 ? 4 : 8;
    hf_wide in[HF_AHEAD] = {{0}}, out = {0, 0, 0, 0};
    float sum[8] = {0};
    hf_u32 rank;
    int i;
    for (rank = 0; rank < args->world; rank++) {
        if (rank % HF_AHEAD == 0) {
            HF_UNROLL
            for (i = 0; i < HF_AHEAD; i++) {
                hf_u32 source = rank + (hf_u32)i;
                in[i] = own;
                if (source < args->world && source != args->rank)
                    in[i] = *HF_PTR(const hf_wide, hf_recv(args, epoch, source) + p * HF_PACK);
            }
        }
        HF_UNROLL
        for (i = 0; i < elements; i++) {
            float value = hf_widen(hf_element(in[0], i, dtype), dtype);
            sum[i] = rank == 0 ? value : hf_fold(sum[i], value, args->reduce);
        }
        HF_UNROLL
        for (i = 1; i < HF_AHEAD; i++) /* and not in[rank % HF_AHEAD], which registers cannot do */
            in[i - 1] = in[i];
    }
    HF_UNROLL
    for (i = 0; i < elements; i++) {
        hf_u32 bits = hf_narrow(args->reduce == HF_AVG ? sum[i] / (float)args->world : sum[i], dtype);
        if (dtype == HF_F32)
            out[i] = bits;
        else
            out[i / 2] |= bits << i % 2 * 16;
    }
    return out;
}

/* Lane `first` of `step` combines the packs that it has put: out may be in. */
HF_FN void hf_sum(const struct hf_call *args, hf_u64 epoch, hf_u64 first, hf_u64 step) {
    HF_SHARE(p, hf_packs(args), first, step) {
        hf_u64 at = p * HF_PACK, bytes = hf_pack_bytes(args, p);
        hf_wide own = hf_load_pack(args->in + at, bytes);
        if (args->dtype == HF_F32)
            own = hf_combine(args, epoch, p, own, HF_F32);
        else if (args->dtype == HF_BF16)
            own = hf_combine(args, epoch, p, own, HF_BF16);
        else
            own = hf_combine(args, epoch, p, own, HF_F16);
        hf_store_pack(args->out + at, own, bytes);
    }
}

#endif
