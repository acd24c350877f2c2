/*
 * What the mailbox's kernels promise, on memory that is weaker than a GPU's, one deterministic check each: one rank of a world, whose
 * peers are played. Prints the name of each check that fails, and what it saw; exits 1 if any did.
 */
#define HF_HOST_BUILD
#define HF_MEMORY "weak_region.h"
#include <stdio.h>
#include "mailbox.hip"

#define MUST(x)                                                                                                        \
    do {                                                                                                               \
        if (!(x) && !world.failed)                                                                                     \
            world.failed = #x;                                                                                         \
    } while (0)

enum { MEMORY = WORLD * SLOT + 64 };
static _Alignas(16) unsigned char in[MEMORY], out[MEMORY], want[MEMORY];
static hf_u64 watched; /* what a hook works on */

/* What a rank sends in a call of a class. */
static unsigned char byte_of(hf_u32 klass, hf_u32 source, hf_u64 epoch, size_t i) {
    return (unsigned char)(i * 7 + i / 256 * 3 + source * 131 + epoch * 29 + klass * 61);
}
static void fill(unsigned char *to, hf_u32 klass, hf_u32 source, hf_u64 epoch, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        to[i] = byte_of(klass, source, epoch, i);
}
static int same(const unsigned char *p, hf_u32 klass, hf_u32 source, hf_u64 epoch, size_t n) {
    size_t i;
    for (i = 0; i < n && p[i] == byte_of(klass, source, epoch, i); i++)
        ;
    return i == n;
}
static int all(const unsigned char *p, int byte, size_t n) {
    while (n > 0 && p[n - 1] == byte)
        n--;
    return n == 0;
}

static struct hf_call group(hf_u64 bytes) {
    struct hf_call a = {0};
    a.mailbox = (hf_u64)&world.device;
    a.region = (hf_u64)&world.cached;
    a.in = (hf_u64)in;
    a.out = (hf_u64)out;
    a.bytes = bytes;
    a.slot_bytes = SLOT;
    a.world = WORLD;
    a.rank = a.target = ME;
    a.stripes = STRIPES;
    a.tag = 0xBEEF;
    a.dtype = HF_F32;
    a.reduce = HF_SUM;
    return a;
}
static struct hf_call pair(hf_u32 peer, hf_u64 bytes) {
    struct hf_call a = group(bytes);
    a.target = peer;
    return a;
}
static void gather(struct hf_call a, unsigned blocks) { hf_gather__host(&a, blocks, 32); }
static void reduce(struct hf_call a, unsigned blocks) { hf_all_reduce__host(&a, blocks, 32); }
static void swap(struct hf_call a, unsigned blocks) { hf_exchange__host(&a, blocks, 32); }

/* A peer's stripe of a call: its payload, then its flag. Stripes are cut between packs, the first ones longer. */
static void stripe_comes(hf_u32 klass, hf_u32 source, hf_u64 epoch, const unsigned char *payload, hf_u64 bytes, hf_u32 stripe) {
    hf_u64 packs = (bytes + 15) / 16, less = packs / STRIPES, more = packs % STRIPES;
    hf_u64 from = 16 * (stripe * less + (stripe < more ? stripe : more)), to = from + 16 * (less + (stripe < more));
    if (to > bytes)
        to = bytes;
    if (to > from)
        memcpy(world.host.recv[klass][source][epoch % 2] + from, payload + from, to - from);
    world.host.region.flag[klass][epoch % 2][source][stripe] = 0xBEEFull << HF_FLAG_SHIFT | (epoch & HF_FLAG_EPOCH);
}
static void peer_comes(hf_u32 klass, hf_u32 source, hf_u64 epoch, const unsigned char *payload, hf_u64 bytes) {
    hf_u32 stripe;
    for (stripe = 0; stripe < STRIPES; stripe++)
        stripe_comes(klass, source, epoch, payload, bytes, stripe);
}
static void pattern_comes(hf_u32 klass, hf_u32 source, hf_u64 epoch, hf_u64 bytes) {
    static unsigned char payload[SLOT];
    fill(payload, klass, source, epoch, bytes);
    peer_comes(klass, source, epoch, payload, bytes);
}
static void peers_come(hf_u64 epoch, hf_u64 bytes) {
    hf_u32 source;
    for (source = 0; source < WORLD; source++)
        if (source != ME)
            pattern_comes(HF_GROUP, source, epoch, bytes);
}
static int gathered(const unsigned char *p, hf_u64 epoch, hf_u64 bytes) {
    hf_u32 source;
    for (source = 0; source < WORLD; source++)
        if (!same(p + source * bytes, HF_GROUP, source, epoch, bytes))
            return 0;
    return 1;
}

/* The doorbell is the last thing that the proxy sees of an input: the slot, whole, its size and its flag are there by then. */
static void sees_input(hf_u32 target, hf_u64 epoch) {
    watched++;
    MUST(target == ME && epoch == 1);
    MUST(same(world.host.send[ME][1], HF_GROUP, ME, 1, 3001));
    MUST(world.host.region.doorbell[ME].bytes[1] == 3001);
    MUST(world.host.region.doorbell[ME].flag[1] == (0xBEEFull << HF_FLAG_SHIFT | 1));
    MUST(world.turns == 0);
}
static void the_doorbell_rings_last(void) {
    fill(in, HF_GROUP, ME, 1, 3001);
    peers_come(1, 3001);
    world.rung = sees_input;
    gather(group(3001), 4);
    MUST(watched == 1);
    MUST(gathered(out, 1, 3001));
    MUST(world.device.target[ME].epoch == 1 && world.device.target[ME].staged == 0 && world.device.target[ME].left == 0);
    MUST(world.host.region.doorbell[ME].ended == 1);
}

/* Each stripe of each peer in turn is the last to come, by ten turns. The device has looked at the slots before. */
static hf_u32 late_peer, late_stripe;
static void all_but_one_come(hf_u32 target, hf_u64 epoch) {
    static unsigned char payload[SLOT];
    hf_u32 source, stripe;
    MUST(target == ME);
    for (source = 0; source < WORLD; source++) {
        fill(payload, HF_GROUP, source, epoch, 1000);
        for (stripe = STRIPES; stripe-- > 0;)
            if (source != ME && (source != late_peer || stripe != late_stripe))
                stripe_comes(HF_GROUP, source, epoch, payload, 1000, stripe);
    }
}
static void the_last_one_comes(void) {
    static unsigned char payload[SLOT];
    fill(payload, HF_GROUP, late_peer, watched, 1000);
    if (world.turns == 10)
        stripe_comes(HF_GROUP, late_peer, watched, payload, 1000, late_stripe);
}
static void each_stripe_of_each_peer_is_awaited(void) {
    world.rung = all_but_one_come;
    world.turn = the_last_one_comes;
    for (late_peer = 0; late_peer < WORLD; late_peer++)
        for (late_stripe = 0; late_peer != ME && late_stripe < STRIPES; late_stripe++) {
            world.turns = 0;
            fill(in, HF_GROUP, ME, ++watched, 1000);
            gather(group(1000), 3);
            MUST(world.turns == 10);
            MUST(gathered(out, watched, 1000));
        }
    MUST(world.device.target[ME].epoch == (WORLD - 1) * STRIPES);
}

/* Payload and addresses of every remainder; nothing beside the output is written. */
static void every_size_at_every_address(void) {
    hf_u64 bytes, shift, epoch = 0;
    struct hf_call a;
    for (bytes = 0; bytes <= 67; bytes++)
        for (shift = 0; shift < 17; shift += bytes % 3 + 1) {
            epoch++;
            a = group(bytes);
            a.in += shift * 5 % 16;
            a.out += shift;
            fill(in + shift * 5 % 16, HF_GROUP, ME, epoch, bytes);
            peers_come(epoch, bytes);
            memset(out, 0xA5, sizeof out);
            gather(a, 2);
            MUST(gathered(out + shift, epoch, bytes));
            MUST(all(out, 0xA5, shift) && all(out + shift + WORLD * bytes, 0xA5, 40));

            a.target = 3;
            fill(in + shift * 5 % 16, HF_PAIR, ME, epoch, bytes);
            pattern_comes(HF_PAIR, 3, epoch, bytes);
            memset(out, 0xA5, sizeof out);
            swap(a, 2);
            MUST(same(out + shift, HF_PAIR, 3, epoch, bytes));
            MUST(all(out, 0xA5, shift) && all(out + shift + bytes, 0xA5, 40));
            MUST(same(world.host.send[3][epoch % 2], HF_PAIR, ME, epoch, bytes));
        }
    MUST(world.turns == 0);
}

static void a_gather_in_place(void) {
    struct hf_call a = group(777);
    a.in = (hf_u64)(out + ME * 777);
    fill(out + ME * 777, HF_GROUP, ME, 1, 777);
    peers_come(1, 777);
    gather(a, 3);
    MUST(gathered(out, 1, 777));
}

/* What the slot's last call left there is no flag of this one. */
static void next_epoch_comes(void) {
    MUST(world.turns <= 7);
    if (world.turns == 7)
        peers_come(3, 100);
}
static void the_flag_of_two_calls_ago_is_none(void) {
    hf_u64 epoch;
    for (epoch = 1; epoch <= 3; epoch++) {
        if (epoch < 3)
            peers_come(epoch, 100);
        else
            world.turn = next_epoch_comes;
        fill(in, HF_GROUP, ME, epoch, 100);
        gather(group(100), 1);
        MUST(gathered(out, epoch, 100));
    }
    MUST(world.turns == 7);
}

/* A flag has the low bits of a number: where they wrap, those of two calls ago are greater. */
static void lap_comes(void) {
    if (world.turns == 3)
        peers_come(HF_FLAG_EPOCH + 1, 100);
}
static void epochs_wrap(void) {
    world.device.target[ME].epoch = HF_FLAG_EPOCH;
    peers_come(HF_FLAG_EPOCH - 1, 100);
    fill(in, HF_GROUP, ME, HF_FLAG_EPOCH + 1, 100);
    world.turn = lap_comes;
    gather(group(100), 1);
    MUST(world.turns == 3);
    MUST(gathered(out, HF_FLAG_EPOCH + 1, 100));
    MUST(world.host.region.doorbell[ME].ended == HF_FLAG_EPOCH + 1);
}

/* The proxy sleeps across two calls: what the peers sent lets the first end. Each slot has its own size, flag and payload. */
static void a_proxy_may_sleep_across_two_calls(void) {
    struct hf_call a = group(300);
    peers_come(1, 300);
    peers_come(2, 40);
    fill(in, HF_GROUP, ME, 1, 300);
    gather(a, 2);
    a.bytes = 40;
    fill(in, HF_GROUP, ME, 2, 40);
    gather(a, 1);
    MUST(world.host.region.doorbell[ME].epoch == 2);
    MUST(world.host.region.doorbell[ME].bytes[1] == 300 && world.host.region.doorbell[ME].bytes[0] == 40);
    MUST(world.host.region.doorbell[ME].flag[1] == (0xBEEFull << HF_FLAG_SHIFT | 1) && world.host.region.doorbell[ME].flag[0] == (0xBEEFull << HF_FLAG_SHIFT | 2));
    MUST(same(world.host.send[ME][1], HF_GROUP, ME, 1, 300));
    MUST(same(world.host.send[ME][0], HF_GROUP, ME, 2, 40));
}

/* Calls of the group, and of each pair, as the ranks happen to have had them. */
static void pairs_and_group_count_apart(void) {
    static const int order[] = {ME, 0, 0, 3, ME, 3, 0, ME, 2, ME};
    hf_u64 epochs[WORLD] = {0};
    size_t i;
    for (i = 0; i < sizeof order / sizeof *order; i++) {
        hf_u32 target = (hf_u32)order[i], klass = target == ME ? HF_GROUP : HF_PAIR;
        hf_u64 epoch = ++epochs[target];
        fill(in, klass, ME, epoch, 200);
        if (target == ME) {
            peers_come(epoch, 200);
            gather(group(200), 1);
            MUST(gathered(out, epoch, 200));
        } else {
            pattern_comes(HF_PAIR, target, epoch, 200);
            swap(pair(target, 200), 1);
            MUST(same(out, HF_PAIR, target, epoch, 200));
        }
        MUST(same(world.host.send[target][epoch % 2], klass, ME, epoch, 200));
        MUST(world.host.region.doorbell[target].epoch == epoch && world.host.region.doorbell[target].ended == epoch);
    }
    for (i = 0; i < WORLD; i++)
        MUST(world.device.target[i].epoch == epochs[i]);
    MUST(world.turns == 0);
}

/* Nothing is there for the second block to put, and all peers have sent: it is through before the first has begun. */
static void a_block_may_leave_before_another_has_staged(void) {
    struct hf_call a = group(16);
    struct hf_grid first = {0, 2, 32}, second = {1, 2, 32};
    fill(in, HF_GROUP, ME, 1, 16);
    peers_come(1, 16);
    hf_put_and_copy_own(&a, &second);
    hf_finish_copy(&a, &second);
    MUST(world.device.target[ME].epoch == 0 && world.host.region.doorbell[ME].ended == 0);
    MUST(world.host.region.doorbell[ME].epoch == 0);
    hf_put_and_copy_own(&a, &first);
    MUST(world.host.region.doorbell[ME].epoch == 1);
    MUST(world.device.target[ME].epoch == 0);
    hf_finish_copy(&a, &first);
    MUST(world.device.target[ME].epoch == 1 && world.host.region.doorbell[ME].ended == 1);
    MUST(gathered(out, 1, 16));
}

#include "calls_sum.h"
#include "calls_fail.h"

static const struct check {
    const char *name;
    void (*run)(void);
} checks[] = {
#define CHECK(name) {#name, name}
    CHECK(the_doorbell_rings_last), CHECK(each_stripe_of_each_peer_is_awaited), CHECK(every_size_at_every_address),
    CHECK(a_gather_in_place), CHECK(the_flag_of_two_calls_ago_is_none), CHECK(epochs_wrap), CHECK(a_proxy_may_sleep_across_two_calls),
    CHECK(pairs_and_group_count_apart), CHECK(a_block_may_leave_before_another_has_staged), SUM_CHECKS, FAIL_CHECKS,
};

int main(void) {
    static size_t i; /* static: longjmp spares it */
    static int status;
    for (i = 0; i < sizeof checks / sizeof *checks; i++) {
        memset(&world, 0, sizeof world);
        memset(in, 0, sizeof in);
        memset(out, 0, sizeof out);
        memset(want, 0, sizeof want);
        watched = 0;
        if (setjmp(world.hung))
            world.failed = "the kernel never ended";
        else
            checks[i].run();
        if (world.failed) {
            printf("FAIL %s: %s\n", checks[i].name, world.failed);
            status = 1;
        }
    }
    if (!status)
        printf("PASS %zu checks\n", i);
    return status;
}
