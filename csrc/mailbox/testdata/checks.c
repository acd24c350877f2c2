/*
 * What the kernels promise, on memory that is weaker than a GPU's, one deterministic check each. Prints the name of each check
 * that fails, and what it saw; exits 1 if any did.
 */
#define HF_HOST_BUILD
#define HF_MEMORY "weak.h"
#include <stdio.h>
#include "mailbox.hip"

#define MUST(x)                                                                                                        \
    do {                                                                                                               \
        if (!(x) && !world.failed)                                                                                     \
            world.failed = #x;                                                                                         \
    } while (0)

static unsigned char memory[WINDOW], want[WINDOW];
static hf_u64 watched; /* what a hook works on */

static struct hf_args bare(void) {
    struct hf_args a = {0};
    a.device = (hf_u64)&world.device;
    a.host = (hf_u64)&world.cached_host;
    a.window = WINDOW;
    a.memory = (hf_u64)memory;
    return a;
}
static struct hf_args moving(hf_u64 bytes) {
    struct hf_args a = bare();
    a.pieces = 1;
    a.bytes = bytes;
    return a;
}
static void stage_on(struct hf_args a, unsigned blocks) {
    a.slab = (hf_u64)world.cached_down;
    hf_stage__host(&a, blocks, 32);
}
static void collect_on(struct hf_args a, unsigned blocks) {
    a.slab = (hf_u64)world.cached_up;
    hf_collect__host(&a, blocks, 32);
}
static void stage(struct hf_args a) { stage_on(a, 1); }
static void collect(struct hf_args a) { collect_on(a, 1); }
static void finish(hf_u64 sequence) { world.host.done[sequence % HF_RING] = sequence; }
static void fail_all(hf_u64 reason) {
    int i;
    for (i = 0; i < HF_RING; i++)
        world.host.done[i] = HF_FAILED | reason << HF_REASON_SHIFT;
}
static hf_u64 failure(hf_u64 reason, hf_u64 sequence) { return HF_FAILED | reason << HF_REASON_SHIFT | sequence; }
static int all(const unsigned char *p, int byte, size_t n) {
    while (n > 0 && p[n - 1] == byte)
        n--;
    return n == 0;
}

/* Ready is the last thing that the host sees of a stage: the input, whole, and the descriptor are there by then. */
static void sees_input(hf_u64 sequence) {
    watched++;
    MUST(sequence == 1);
    MUST(memcmp(world.down + WINDOW, want, 3000) == 0);
    MUST(world.host.descriptor[1] == 77);
}
static void stage_publishes_last(void) {
    struct hf_args a = moving(3000);
    int i;
    for (i = 0; i < WINDOW; i++)
        memory[i] = want[i] = (unsigned char)(i * 7);
    world.ready = sees_input;
    a.descriptor = 77;
    stage_on(a, 4);
    MUST(watched == 1);
    MUST(world.device.epoch == 1);
    MUST(world.device.stage_arrived == 0);
}

static void result_comes(void) {
    if (world.turns == 5) {
        memset(world.up + WINDOW, 9, WINDOW);
        finish(1);
    }
}
/* The device has looked at the slab before, and its cache is stale. */
static void collect_waits_for_done(void) {
    stage(moving(100));
    world.turn = result_comes;
    collect_on(moving(100), 3);
    MUST(world.turns == 5);
    MUST(all(memory, 9, 100));
    MUST(all(memory + 100, 0, 100));
    MUST(world.host.collected == 1);
    MUST(world.device.collect_arrived == 0);
}

static void window_is_read(void) {
    MUST(all(world.down + WINDOW, 1, 100)); /* the first sequence's input, until the host has ended it */
    if (world.turns == 5)
        finish(1);
}
static void stage_waits_for_its_window(void) {
    int i;
    world.turn = window_is_read;
    for (i = 1; i <= 3; i++) {
        memset(memory, i, 100);
        stage(moving(100));
        MUST(world.turns == (i == 3 ? 5u : 0u));
    }
    MUST(all(world.down + WINDOW, 3, 100));
}

static void slot_is_read(void) {
    MUST(world.host.ready[1] == 1 && world.host.descriptor[1] == 1);
    if (world.turns == 5)
        finish(1);
}
static void stage_waits_for_its_slot(void) {
    struct hf_args a = bare();
    world.turn = slot_is_read;
    for (a.descriptor = 1; a.descriptor <= HF_RING + 1; a.descriptor++) {
        MUST(world.turns == 0);
        stage(a);
    }
    MUST(world.turns == 5);
    MUST(world.host.ready[1] == HF_RING + 1 && world.host.descriptor[1] == HF_RING + 1);
}

static void answers(hf_u64 sequence) {
    memset(world.up + sequence % 2 * WINDOW, (int)(sequence % 251), WINDOW);
    finish(sequence);
}
static void laps(void) {
    hf_u64 i;
    world.ready = answers;
    for (i = 1; i <= 3 * HF_RING + 5; i++) {
        stage(moving(10));
        collect(moving(10));
        MUST(all(memory, (int)(i % 251), 10));
    }
    MUST(world.device.epoch == 3 * HF_RING + 5);
    MUST(world.turns == 0);
}

/* A stream that is late to look finds the sequence of the next lap in its slot. */
static void a_later_lap_is_done_too(void) {
    stage(bare());
    world.host.done[1] = HF_RING + 1;
    collect(bare());
    MUST(world.host.collected == 1);
    MUST(world.turns == 0);
}

static void collect_may_be_one_behind(void) {
    struct hf_args a = moving(10);
    world.ready = answers;
    stage(a);
    stage(a);
    a.back = 1;
    collect(a);
    MUST(all(memory, 1, 10));
    MUST(world.host.collected == 1);
    a.back = 0;
    collect(a);
    MUST(all(memory, 2, 10));
}

static void collect_before_any_stage_is_nothing(void) {
    struct hf_args a = moving(10);
    collect(a);
    a.back = 1;
    collect(a);
    MUST(world.host.collected == 0 && world.host.failed == 0 && world.turns == 0);
}

/* After a failure: nothing is copied, published or counted, whatever the host says later. */
static void is_frozen(hf_u64 epoch, hf_u64 record) {
    struct hf_device before;
    int i;
    MUST(world.device.poison == record);
    MUST(world.host.failed == record);
    MUST(world.device.epoch == epoch);
    before = world.device;
    for (i = 0; i < HF_RING; i++)
        world.host.done[i] = 1000;
    world.host.abort = 0;
    world.host.failed = 0; /* told once */
    memset(memory, 5, sizeof memory);
    memset(world.cached_down, 6, sizeof world.cached_down);
    memset(world.up, 7, sizeof world.up);
    world.turns = 0;
    world.turn = NULL;
    world.ready = NULL;
    stage(moving(100));
    collect(moving(100));
    MUST(memcmp(&before, &world.device, sizeof before) == 0);
    MUST(all(memory, 5, sizeof memory));
    MUST(all(world.cached_down, 6, sizeof world.cached_down));
    MUST(world.host.failed == 0);
    MUST(world.turns == 0);
}

static void a_wait_ends_in_its_time(void) {
    struct hf_args a = moving(100);
    a.timeout = 20 * TURN;
    stage(a);
    collect(a);
    MUST(world.turns >= 20 && world.turns <= 22);
    is_frozen(1, failure(HF_REASON_TIMEOUT, 1));
}
static void a_stages_wait_ends_in_its_time(void) {
    struct hf_args a = moving(100);
    a.timeout = 20 * TURN;
    stage(a);
    stage(a);
    stage(a);
    MUST(world.host.ready[3] == 0);
    is_frozen(2, failure(HF_REASON_TIMEOUT, 3));
}

static void late_result(void) {
    if (world.turns == HUNG - 1)
        finish(1);
}
static void no_timeout_waits(void) {
    stage(bare());
    world.turn = late_result;
    collect(bare());
    MUST(world.host.collected == 1);
}

static void clock_steps_back(void) {
    world.clock = world.turns < 50 ? 1 : world.clock;
    if (world.turns == 55)
        finish(1);
}
static void a_clock_that_steps_back_ends_nothing(void) {
    struct hf_args a = bare();
    a.timeout = 20 * TURN;
    world.clock = 1000000000;
    stage(a);
    world.turn = clock_steps_back;
    collect(a);
    MUST(world.host.collected == 1);
}

static void abort_comes(void) { world.host.abort = world.turns == 5; }
static void abort_ends_a_wait(void) {
    stage(moving(100));
    world.turn = abort_comes;
    collect(moving(100));
    MUST(world.turns == 5);
    MUST(all(memory, 0, 100));
    is_frozen(1, failure(HF_REASON_ABORT, 1));
}
static void what_is_done_is_collected_in_spite_of_abort(void) {
    world.ready = answers;
    stage(moving(100));
    world.host.abort = 1;
    collect(moving(100));
    MUST(all(memory, 1, 100));
    MUST(world.host.failed == 0);
}

static void a_failed_call_copies_nothing(void) {
    stage(moving(100));
    memset(world.up, 9, sizeof world.up);
    world.host.done[1] = failure(HF_REASON_CALL, 1);
    collect(moving(100));
    MUST(all(memory, 0, 100));
    MUST(world.host.collected == 0);
    is_frozen(1, failure(HF_REASON_CALL, 1));
}
static void a_released_plan_is_named(void) {
    stage(moving(100));
    world.host.done[1] = failure(HF_REASON_RELEASED, 1);
    collect(moving(100));
    is_frozen(1, failure(HF_REASON_RELEASED, 1));
}
static void an_unknown_reason_is_a_failed_call(void) {
    stage(moving(100));
    world.host.done[1] = ~0ull;
    collect(moving(100));
    is_frozen(1, failure(HF_REASON_CALL, 1));
}

/* All is well for the first block, and the host fails the group before the second looks: the stage is not published. */
static void group_fails(void) {
    if (world.barriers == 4 + 2)
        fail_all(HF_REASON_CALL);
}
static void one_failed_block_is_enough(void) {
    world.barriers = 0;
    stage(moving(2000));
    stage(moving(2000));
    finish(1);
    world.barrier = group_fails;
    stage_on(moving(2000), 3);
    MUST(world.host.ready[3] == 0);
    world.barrier = NULL;
    world.device.stage_arrived = 0;
    is_frozen(2, failure(HF_REASON_CALL, 3));
}

static const struct check {
    const char *name;
    void (*run)(void);
} checks[] = {
#define CHECK(name) {#name, name}
    CHECK(stage_publishes_last), CHECK(collect_waits_for_done), CHECK(stage_waits_for_its_window),
    CHECK(stage_waits_for_its_slot), CHECK(laps), CHECK(a_later_lap_is_done_too), CHECK(collect_may_be_one_behind),
    CHECK(collect_before_any_stage_is_nothing), CHECK(a_wait_ends_in_its_time), CHECK(a_stages_wait_ends_in_its_time),
    CHECK(no_timeout_waits), CHECK(a_clock_that_steps_back_ends_nothing), CHECK(abort_ends_a_wait),
    CHECK(what_is_done_is_collected_in_spite_of_abort), CHECK(a_failed_call_copies_nothing),
    CHECK(a_released_plan_is_named), CHECK(an_unknown_reason_is_a_failed_call), CHECK(one_failed_block_is_enough),
};

int main(void) {
    static size_t i; /* static: longjmp spares it */
    static int status;
    for (i = 0; i < sizeof checks / sizeof *checks; i++) {
        memset(&world, 0, sizeof world);
        memset(memory, 0, sizeof memory);
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
