#include <time.h>
#include <unistd.h>

#include "check.h"

enum { CALLS = 8 };

// hangs queues the calls of two ranks: down, ready, done, up, on each rank's own stream, and says whether nothing moves
// although the host answers every ready that it sees.
static bool hangs(const char *settings, size_t bytes, bool lockstep) {
    begin(settings);
    void *s[2] = {new_stream(), new_stream()};
    uint64_t *w = host_words(4096);
    char *slab = (char *)host_words(1 << 20), *d[2] = {device_bytes(1 << 20), device_bytes(1 << 20)};
    for (int i = 0; i < 2 * CALLS; i++) {
        int rank = lockstep ? i % 2 : i / CALLS;
        uint64_t call = 1 + (uint64_t)(lockstep ? i / 2 : i % CALLS);
        OK(hipMemcpyAsync(slab + rank * (1 << 19), d[rank], bytes, COPY_DEVICE_TO_HOST, s[rank]));
        OK(hipStreamWriteValue64(s[rank], &w[rank], call, 0));
        OK(hipStreamWaitValue64(s[rank], &w[16 + rank], call, WAIT_GTE, ~0ull));
        OK(hipMemcpyAsync(d[rank], slab + rank * (1 << 19), bytes, COPY_HOST_TO_DEVICE, s[rank]));
    }
    bool hung = false;
    for (uint64_t call = 1; call <= CALLS && !hung; call++) {
        OK(softhip_settle(20000)); // each rank has got as far as it can
        hung = load(&w[0]) < call || load(&w[1]) < call;
        if (!hung) { // both are ready: the answer
            store(&w[16], call);
            store(&w[17], call);
        }
    }
    char text[8192];
    softhip_parked(text, sizeof text);
    if (hung)
        CHECK(strstr(text, "SDMA ring") != NULL && strstr(text, "waits for operation") != NULL && strstr(text, "hipStreamWaitValue64") != NULL);
    store(&w[16], CALLS);
    store(&w[17], CALLS);
    OK(hipStreamSynchronize(s[0]));
    OK(hipStreamSynchronize(s[1]));
    for (int i = 0; i < 2; i++) {
        OK(hipStreamDestroy(s[i]));
        OK(hipFree(d[i]));
    }
    OK(hipHostFree(w));
    OK(hipHostFree(slab));
    return hung;
}

// The 16 KiB rule: above it a copy behind a wait blocks the ring for every stream.
static void threshold(void) {
    CHECK(!hangs("sdma_rings=1", 16384, true));
    CHECK(hangs("sdma_rings=1", 16385, true));
    CHECK(hangs("sdma_rings=1 blit_bytes=0", 4096, true));
    CHECK(hangs("sdma_rings=1 hip=6.2.0", 4096, true)); // 0 is the default there
    CHECK(!hangs("sdma_rings=1 blit_bytes=1048576", 65536, true));
    CHECK(!hangs("sdma_rings=2", 65536, true)); // in lockstep two rings suffice
    CHECK(hangs("sdma_rings=2", 65536, false)); // not where one rank queues ahead
    CHECK(!hangs("sdma_rings=2", 16384, false));
}

// From device to device is no work for a ring, whatever the size.
static void within_the_device(void) {
    begin("");
    void *s = new_stream();
    char *a = device_bytes(1 << 20), *b = device_bytes(1 << 20);
    softhip_op ops[4];
    OK(hipMemcpyAsync(a, b, 1 << 20, COPY_DEVICE_TO_DEVICE, s));
    OK(hipStreamSynchronize(s));
    CHECK(softhip_trace(ops, 4) == 1 && ops[0].ring == 0 && ops[0].queue == softhip_queue(s));
    OK(hipStreamDestroy(s));
    OK(hipFree(a));
    OK(hipFree(b));
}

static void errors(void) {
    begin("");
    void *s = new_stream();
    char *d = device_bytes(100), *h = (char *)host_words(100);
    GIVES(21, hipMemcpyAsync(d, h, 8, 5, s));
    GIVES(1, hipMemcpyAsync(d, h, 101, COPY_DEFAULT, s));
    GIVES(1, hipMemcpyAsync(d + 50, h, 51, COPY_DEFAULT, s));
    GIVES(1, hipMemcpyAsync(NULL, h, 8, COPY_DEFAULT, s));
    GIVES(1, hipMemsetAsync(d, 1, 101, s));
    OK(hipMemcpyAsync(NULL, NULL, 0, COPY_DEFAULT, s));
    char mine[64] = "pageable";
    OK(hipMemcpyAsync(d, mine, 64, COPY_DEFAULT, s));
    memset(mine, 0, sizeof mine); // taken before the call returned
    OK(hipMemcpyAsync(h, d, 64, COPY_DEFAULT, s));
    OK(hipStreamSynchronize(s));
    CHECK(strcmp(h, "pageable") == 0);
    OK(hipStreamDestroy(s));
    OK(hipFree(d));
    OK(hipHostFree(h));
    begin("");
    d = device_bytes(100);
    GIVES(700, hipMemcpy(d, (void *)16, 64, COPY_DEFAULT)); // not there at all
}

static void modelled(void) {
    begin("copy_latency_us=2000 copy_mb_s=100");
    softhip_op ops[8];
    void *s = new_stream();
    char *d = device_bytes(1 << 20), *h = (char *)host_words(1 << 20);
    OK(hipMemcpyAsync(d, h, 1000000, COPY_DEFAULT, s));
    OK(hipStreamSynchronize(s));
    CHECK(softhip_trace(ops, 8) == 1);
    uint64_t took = ops[0].end_ns - ops[0].start_ns;
    CHECK(took >= 12000000); // 2 ms, and 1 MB at 100 MB/s
    CHECK(ops[0].bytes == 1000000 && ops[0].ring == 1 && strcmp(ops[0].name, "MemcpyAsync") == 0);
    OK(hipStreamDestroy(s));
    OK(hipFree(d));
    OK(hipHostFree(h));
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// peek looks at what an engine may be writing, as a host looks at a device's memory: nothing orders the two, and nothing need.
__attribute__((noinline, no_sanitize_thread)) static char peek(const volatile char *p) { return *p; }

// A modelled copy lands bit by bit. One who is kept from looking in time looks at another.
static void modelled_lands(void) {
    begin("copy_mb_s=1");
    enum { BYTES = 192 << 10, TRIES = 5 };
    void *s = new_stream();
    char *d = device_bytes(BYTES), *h = (char *)host_words(BYTES);
    OK(hipMemset(d, 1, BYTES));
    bool in_part = false;
    for (int i = 0; i < TRIES && !in_part; i++) {
        memset(h, 0, BYTES);
        OK(hipMemcpyAsync(h, d, BYTES, COPY_DEFAULT, s));
        while (peek(h) == 0)
            usleep(200);
        in_part = peek(h + BYTES - 1) == 0;
        OK(hipStreamSynchronize(s));
        CHECK(h[BYTES - 1] == 1);
    }
    CHECK(in_part);
    OK(hipStreamDestroy(s));
    OK(hipFree(d));
    OK(hipHostFree(h));
}

// Its time counts from when it could begin: at once on an idle engine, not while that is held or what it waits for is to come.
static void modelled_begins(void) {
    begin("copy_latency_us=20000");
    softhip_op ops[8];
    void *s = new_stream(), *other = masked_stream(), *e = NULL;
    OK(hipEventCreateWithFlags(&e, EVENT_NO_TIMING));
    enum { ON_A_RING = 32 << 10 };
    uint64_t *w = host_words(64), *h = host_words(ON_A_RING);
    char *d = device_bytes(ON_A_RING);
    OK(hipMemcpyAsync(d, h, 64, COPY_DEFAULT, s));
    OK(hipStreamSynchronize(s));
    CHECK(softhip_trace(ops, 8) == 1 && ops[0].start_ns == ops[0].queued_ns);
    OK(softhip_hold(softhip_queue(s)));
    OK(hipMemcpyAsync(d, h, 64, COPY_DEFAULT, s));
    usleep(20000);
    uint64_t released = now();
    OK(softhip_release(softhip_queue(s)));
    OK(hipStreamSynchronize(s));
    CHECK(now() - released >= 20000000);
    OK(hipStreamWaitValue64(other, w, 1, WAIT_GTE, ~0ull));
    OK(hipEventRecord(e, other));
    OK(hipStreamWaitEvent(s, e, 0));
    OK(hipMemcpyAsync(d, h, ON_A_RING, COPY_DEFAULT, s));
    usleep(20000);
    released = now();
    store(w, 1);
    OK(hipStreamSynchronize(s));
    CHECK(now() - released >= 20000000);
    OK(hipEventDestroy(e));
    OK(hipStreamDestroy(s));
    OK(hipStreamDestroy(other));
    OK(hipFree(d));
    OK(hipHostFree(w));
    OK(hipHostFree(h));
}

void test_copies(void) {
    threshold();
    within_the_device();
    errors();
    modelled();
    modelled_lands();
    modelled_begins();
}
