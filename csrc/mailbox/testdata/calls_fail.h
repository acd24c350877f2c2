/* Part of calls.c: the checks of calls that fail. */

static hf_u64 failure(hf_u64 cause, hf_u64 epoch) { return HF_FAILED | cause << HF_REASON_SHIFT | epoch; }

/* After a failure: nothing is put, rung, taken or counted, on any target, whatever comes later. */
static void is_frozen(hf_u64 epoch, hf_u64 word) {
    struct hf_mailbox before;
    static struct memory memory;
    MUST(world.device.poison == word);
    MUST(world.host.region.record.failed == word);
    MUST(world.device.target[ME].epoch == epoch && world.host.region.doorbell[ME].ended == epoch);
    before = world.device;
    peers_come(epoch + 1, 100);
    pattern_comes(HF_PAIR, 2, 1, 100);
    world.host.region.abort = 0;
    memset(&world.host.region.record, 0, sizeof world.host.region.record); /* told once */
    memset(&world.cached.region.record, 0, sizeof world.cached.region.record);
    memset(in, 5, sizeof in);
    memset(out, 6, sizeof out);
    world.turns = 0;
    world.turn = NULL;
    world.rung = NULL;
    memory = world.host;
    gather(group(100), 2);
    reduce(group(100), 2);
    swap(pair(2, 100), 2);
    MUST(memcmp(&before, &world.device, sizeof before) == 0);
    MUST(memcmp(&memory, &world.host, sizeof memory) == 0);
    MUST(all(out, 6, sizeof out));
    MUST(world.turns == 0);
}

/* One stripe of one peer is missing, at epoch 2: the call before has left its flag. */
static void all_but_a_stripe(void) {
    static unsigned char payload[SLOT];
    hf_u32 source, stripe;
    peers_come(1, 100);
    gather(group(100), 1);
    peers_come(2, 100);
    fill(payload, HF_GROUP, 3, 2, 100);
    for (source = 0; source < WORLD; source++)
        for (stripe = 0; source != ME && stripe < STRIPES; stripe++)
            world.host.region.flag[HF_GROUP][0][source][stripe] = source == 3 && stripe == 2 ? 5ull << HF_FLAG_SHIFT : 0xBEEFull << HF_FLAG_SHIFT | 2;
    memset(out, 6, sizeof out);
}
static void is_recorded(hf_u64 seen) {
    const struct hf_record *r = &world.host.region.record;
    MUST(r->target == ME && r->peer == 3 && r->stripe == 2);
    MUST(r->seen == seen && r->awaited == (0xBEEFull << HF_FLAG_SHIFT | 2));
    MUST(r->microseconds == world.turns * 1000);
}
static int untaken(void) { /* but for the own block */
    return all(out, 6, ME * 100) && all(out + (ME + 1) * 100, 6, sizeof out - (ME + 1) * 100);
}

static void a_wait_ends_in_its_time(void) {
    struct hf_call a = group(100);
    all_but_a_stripe();
    a.timeout = 50 * TURN;
    gather(a, 1);
    MUST(world.turns >= 50 && world.turns <= 52 + HF_LOOKS);
    MUST(untaken());
    is_recorded(5ull << HF_FLAG_SHIFT);
    is_frozen(1, failure(HF_CAUSE_TIMEOUT, 2));
}

/* What comes of some peers meanwhile does not begin the time anew. */
static void others_come(void) {
    if (world.turns == 40)
        pattern_comes(HF_GROUP, 0, 1, 100);
    if (world.turns == 45)
        pattern_comes(HF_GROUP, 2, 1, 100);
}
static void all_flags_have_one_time(void) {
    struct hf_call a = group(100);
    a.timeout = 50 * TURN;
    world.turn = others_come;
    gather(a, 1);
    MUST(world.turns >= 50 && world.turns <= 52 + HF_LOOKS);
    MUST(world.host.region.record.peer == 3);
    is_frozen(0, failure(HF_CAUSE_TIMEOUT, 1));
}

static void comes_late(void) {
    if (world.turns == HUNG - 1)
        peers_come(1, 100);
}
static void no_timeout_waits(void) {
    world.turn = comes_late;
    fill(in, HF_GROUP, ME, 1, 100);
    gather(group(100), 1);
    MUST(gathered(out, 1, 100));
}

static void clock_steps_back(void) {
    world.clock = world.turns < 200 ? 1 : world.clock;
    if (world.turns == 230)
        peers_come(1, 100);
}
static void a_clock_that_steps_back_ends_nothing(void) {
    struct hf_call a = group(100);
    a.timeout = 20 * TURN;
    world.clock = 1000000000;
    world.turn = clock_steps_back;
    gather(a, 1);
    MUST(world.host.region.doorbell[ME].ended == 1);
}

static void abort_comes(void) { world.host.region.abort = world.turns >= 5; }
static void abort_ends_a_wait(void) {
    all_but_a_stripe();
    world.turn = abort_comes;
    gather(group(100), 1);
    MUST(world.turns >= 5 && world.turns <= 5 + HF_LOOKS);
    MUST(untaken());
    is_recorded(5ull << HF_FLAG_SHIFT);
    is_frozen(1, failure(HF_CAUSE_ABORT, 2));
}
static void what_has_come_is_taken_in_spite_of_abort(void) {
    peers_come(1, 100);
    fill(in, HF_GROUP, ME, 1, 100);
    world.host.region.abort = 1;
    gather(group(100), 2);
    MUST(gathered(out, 1, 100));
    MUST(world.host.region.record.failed == 0);
}

/* A peer that is in another call is refused at once, and by the first flag that says so. */
static void another_call_comes(void) {
    if (world.turns == 7)
        world.host.region.flag[HF_GROUP][0][3][2] = 0xBEEEull << HF_FLAG_SHIFT | 2;
}
static void another_call_is_refused(void) {
    all_but_a_stripe();
    world.turn = another_call_comes;
    gather(group(100), 1);
    MUST(world.turns == 7);
    MUST(untaken());
    is_recorded(0xBEEEull << HF_FLAG_SHIFT | 2);
    is_frozen(1, failure(HF_CAUSE_DESYNC, 2));
}
static void a_later_epoch_is_refused(void) {
    all_but_a_stripe();
    world.host.region.flag[HF_GROUP][0][3][2] = 0xBEEFull << HF_FLAG_SHIFT | 4;
    gather(group(100), 1);
    MUST(world.turns == 0);
    is_recorded(0xBEEFull << HF_FLAG_SHIFT | 4);
    is_frozen(1, failure(HF_CAUSE_DESYNC, 2));
}
static void the_first_failure_is_kept(void) {
    all_but_a_stripe();
    world.host.region.flag[HF_GROUP][0][0][1] = 0xBEEEull << HF_FLAG_SHIFT | 2;
    world.host.region.flag[HF_GROUP][0][3][2] = 0xBEEFull << HF_FLAG_SHIFT | 4;
    gather(group(100), 1);
    MUST(world.host.region.record.peer == 0 && world.host.region.record.stripe == 1);
    is_frozen(1, failure(HF_CAUSE_DESYNC, 2));
}

/* The first block is through, then a call of a pair elsewhere fails the group: the other blocks do not leave. */
static void group_fails(void) {
    if (world.barriers == 3 * 2 + 3)
        world.device.poison = failure(HF_CAUSE_TIMEOUT, 1);
}
static void one_failed_block_is_enough(void) {
    peers_come(1, 2000);
    world.barrier = group_fails;
    gather(group(2000), 3);
    MUST(world.host.region.doorbell[ME].epoch == 1);
    MUST(world.host.region.doorbell[ME].ended == 0 && world.device.target[ME].epoch == 0);
}

#define FAIL_CHECKS                                                                                                    \
    CHECK(a_wait_ends_in_its_time), CHECK(all_flags_have_one_time), CHECK(no_timeout_waits),                           \
        CHECK(a_clock_that_steps_back_ends_nothing),                                                                   \
        CHECK(abort_ends_a_wait), CHECK(what_has_come_is_taken_in_spite_of_abort), CHECK(another_call_is_refused),     \
        CHECK(a_later_epoch_is_refused), CHECK(the_first_failure_is_kept), CHECK(one_failed_block_is_enough)
