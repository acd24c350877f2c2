/* Part of calls.c: the checks of all-reduce. That it does what fabric/internal/reduce does is ranks_linux_test.go's to say. */

/* The inputs of the ranks, one element each, and their sum. */
static hf_u32 one(hf_u32 dtype, hf_u32 op, const hf_u32 inputs[WORLD]) {
    struct hf_call a = group(dtype == HF_F32 ? 4 : 2);
    hf_u64 epoch = world.device.target[ME].epoch + 1;
    hf_u32 source, got = 0;
    a.dtype = dtype;
    a.reduce = op;
    memcpy(in, &inputs[ME], a.bytes);
    for (source = 0; source < WORLD; source++)
        if (source != ME)
            peer_comes(HF_GROUP, source, epoch, (const unsigned char *)&inputs[source], a.bytes);
    reduce(a, 1);
    memcpy(&got, out, a.bytes);
    return got;
}
#define ONE(dtype, op, a, b, c, d) one(dtype, op, (const hf_u32[WORLD]){a, b, c, d})

static void ranks_are_summed_in_order(void) {
    /* 1e8, 1, -1e8, 0 and so on: floats of 24 bits forget a 1 beside 1e8. */
    MUST(ONE(HF_F32, HF_SUM, 0x4CBEBC20, 0x3F800000, 0xCCBEBC20, 0) == 0);
    MUST(ONE(HF_F32, HF_SUM, 0x4CBEBC20, 0xCCBEBC20, 0x3F800000, 0) == 0x3F800000);
    MUST(ONE(HF_F32, HF_SUM, 0x3F800000, 0x4CBEBC20, 0xCCBEBC20, 0) == 0);
}
static void halves_are_rounded_once(void) {
    MUST(ONE(HF_BF16, HF_SUM, 0x4380, 0x3F80, 0x3F80, 0) == 0x4381);
    MUST(ONE(HF_F16, HF_SUM, 0x6800, 0x3C00, 0x3C00, 0) == 0x6801);
    MUST(ONE(HF_F16, HF_SUM, 0x7BFF, 0x7BFF, 0xFBFF, 0) == 0x7BFF); /* past its range on the way */
    MUST(ONE(HF_F16, HF_AVG, 0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF) == 0x7BFF);
}
static void halves_are_rounded_to_even(void) {
    MUST(ONE(HF_BF16, HF_SUM, 0x4380, 0x3F80, 0, 0) == 0x4380); /* half way: 256 + 1 */
    MUST(ONE(HF_BF16, HF_SUM, 0x4381, 0x3F80, 0, 0) == 0x4382);
    MUST(ONE(HF_F16, HF_SUM, 0x6800, 0x3C00, 0, 0) == 0x6800); /* 2048 + 1 */
    MUST(ONE(HF_F16, HF_SUM, 0x6801, 0x3C00, 0, 0) == 0x6802);
}
static void subnormals_are_kept(void) {
    MUST(ONE(HF_F32, HF_SUM, 1, 1, 1, 0) == 3);
    MUST(ONE(HF_BF16, HF_SUM, 1, 1, 1, 0) == 3);
    MUST(ONE(HF_F16, HF_SUM, 1, 1, 1, 0) == 3);
    MUST(ONE(HF_F16, HF_SUM, 0x8001, 0x0400, 0, 0) == 0x03FF);
    MUST(ONE(HF_F16, HF_PROD, 0x3800, 0x0002, 0x3C00, 0x3C00) == 1);
}
static void a_NaN_is_the_canonical_one(void) {
    MUST(ONE(HF_F32, HF_SUM, 0xFFC00001, 0, 0, 0) == 0x7FC00000);
    MUST(ONE(HF_F32, HF_SUM, 0x7F800000, 0xFF800000, 0, 0) == 0x7FC00000);
    MUST(ONE(HF_BF16, HF_SUM, 0, 0xFF81, 0, 0) == 0x7FC0);
    MUST(ONE(HF_F16, HF_SUM, 0, 0, 0, 0xFC01) == 0x7E00);
    MUST(ONE(HF_F16, HF_MAX, 0x3C00, 0x7C01, 0x3C00, 0x3C00) == 0x7E00);
    MUST(ONE(HF_F16, HF_SUM, 0x7C00, 0x3C00, 0, 0) == 0x7C00); /* and infinity is none */
}
static void zeros_have_an_order(void) {
    MUST(ONE(HF_F32, HF_MAX, 0x80000000, 0, 0x80000000, 0x80000000) == 0);
    MUST(ONE(HF_F32, HF_MIN, 0, 0x80000000, 0, 0) == 0x80000000);
    MUST(ONE(HF_F16, HF_MAX, 0x8000, 0x8000, 0x8000, 0x8000) == 0x8000);
}

/* In place, and a block has written before another has put: what that one puts is still the input. */
static void an_all_reduce_in_place(void) {
    static float inputs[WORLD][500];
    struct hf_call a = group(sizeof inputs[0] - 4); /* the last pack is not whole */
    hf_u64 epoch;
    hf_u32 source, i, shift;
    for (epoch = 1; epoch <= 4; epoch++) {
        struct hf_grid first = {0, 3, 32}, second = {1, 3, 32}, third = {2, 3, 32};
        shift = (hf_u32)epoch % 3 * 4;
        for (source = 0; source < WORLD; source++) {
            for (i = 0; i < 500; i++)
                inputs[source][i] = (float)(source * 1000 + i + epoch);
            if (source != ME)
                peer_comes(HF_GROUP, source, epoch, (const unsigned char *)inputs[source], a.bytes);
        }
        for (i = 0; i < 499; i++) {
            float sum = inputs[0][i] + inputs[1][i] + inputs[2][i] + inputs[3][i];
            memcpy(want + 4 * i, &sum, 4);
        }
        memcpy(out + shift, inputs[ME], a.bytes);
        a.in = a.out = (hf_u64)(out + shift);
        hf_put_only(&a, &second);
        hf_finish_sum(&a, &second);
        hf_put_only(&a, &third);
        hf_put_only(&a, &first);
        MUST(memcmp(world.host.send[ME][epoch % 2], inputs[ME], a.bytes) == 0);
        hf_finish_sum(&a, &first);
        hf_finish_sum(&a, &third);
        MUST(memcmp(out + shift, want, a.bytes) == 0);
        MUST(world.device.target[ME].epoch == epoch);
    }
}

#define SUM_CHECKS                                                                                                     \
    CHECK(ranks_are_summed_in_order), CHECK(halves_are_rounded_once), CHECK(halves_are_rounded_to_even),               \
        CHECK(subnormals_are_kept), CHECK(a_NaN_is_the_canonical_one), CHECK(zeros_have_an_order), CHECK(an_all_reduce_in_place)
