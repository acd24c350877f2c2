#include "check.h"

static void *s;
static uint64_t *w;

static bool passes64(uint64_t is, uint64_t value, unsigned how, uint64_t mask) {
    store(&w[0], is);
    OK(hipStreamWaitValue64(s, &w[0], value, how, mask));
    OK(softhip_settle(20000));
    bool through = hipStreamQuery(s) == 0;
    if (!through) { // a value that ends any of them
        store(&w[0], how == WAIT_NOR ? 0 : how == WAIT_EQ ? value : ~0ull);
        OK(hipStreamSynchronize(s));
    }
    return through;
}

static bool passes32(uint32_t is, uint32_t value, unsigned how, uint32_t mask) {
    store(&w[0], 0xffffffff00000000ull | is); // the other half is never looked at
    OK(hipStreamWaitValue32(s, &w[0], value, how, mask));
    OK(softhip_settle(20000));
    bool through = hipStreamQuery(s) == 0;
    if (!through) {
        store(&w[0], how == WAIT_NOR ? 0 : how == WAIT_EQ ? value : 0xffffffffull);
        OK(hipStreamSynchronize(s));
    }
    return through;
}

static void conditions(void) {
    const uint64_t all = ~0ull, top = 1ull << 63;
    CHECK(passes64(5, 5, WAIT_GTE, all));
    CHECK(passes64(top, 5, WAIT_GTE, all)); // unsigned
    CHECK(!passes64(4, 5, WAIT_GTE, all));
    CHECK(!passes64(0x105, 6, WAIT_GTE, 0xff));
    CHECK(passes64(0x105, 5, WAIT_EQ, 0xff));
    CHECK(!passes64(0x105, 5, WAIT_EQ, all));
    CHECK(passes64(6, 2, WAIT_AND, all));
    CHECK(!passes64(5, 2, WAIT_AND, all));
    CHECK(!passes64(6, 10, WAIT_AND, 8));
    CHECK(passes64(6, 1, WAIT_NOR, all));
    CHECK(!passes64(all ^ 1, 1, WAIT_NOR, all));
    CHECK(!passes64(0xf0, 0x0f, WAIT_NOR, 0xff));
    const uint32_t all32 = 0xffffffffu;
    CHECK(passes32(7, 7, WAIT_GTE, all32));
    CHECK(!passes32(6, 7, WAIT_GTE, all32));
    CHECK(passes32(7, 7, WAIT_EQ, all32));
    CHECK(!passes32(8, 7, WAIT_EQ, all32));
    CHECK(passes32(2, 3, WAIT_AND, all32));
    CHECK(!passes32(4, 3, WAIT_AND, all32));
    CHECK(passes32(1, 2, WAIT_NOR, all32));
    CHECK(!passes32(all32 ^ 2, 2, WAIT_NOR, all32));
}

static void errors(void) {
    void *freed = new_stream();
    OK(hipStreamDestroy(freed));
    GIVES(709, hipStreamWaitValue64(freed, w, 1, WAIT_GTE, ~0ull));
    GIVES(1, hipStreamWaitValue64(s, NULL, 1, WAIT_GTE, ~0ull));
    GIVES(1, hipStreamWaitValue64(s, &freed, 1, WAIT_GTE, ~0ull)); // memory that HIP does not know
    GIVES(1, hipStreamWaitValue64(s, w, 1, 4, ~0ull));
    GIVES(1, hipStreamWriteValue64(s, NULL, 1, 0));
    GIVES(1, hipStreamWriteValue64(s, w, 1, 7));
    OK(hipStreamWriteValue64(s, w, 40, 0));
    OK(hipStreamWriteValue64(s, w, 2, WRITE_INCREMENT));
    OK(hipStreamSynchronize(s));
    CHECK(load(w) == 42);
    hipBatchOp ops[3] = {{{BATCH_WRITE64, &w[1], 9, 0, NULL}}, {{BATCH_WAIT64, &w[1], 9, WAIT_EQ, NULL}}, {{BATCH_WRITE32, &w[2], 3, 0, NULL}}};
    OK(hipStreamBatchMemOp(s, 3, ops, 0));
    OK(hipStreamSynchronize(s));
    CHECK(load(&w[1]) == 9 && load(&w[2]) == 3);
    GIVES(1, hipStreamBatchMemOp(s, 257, ops, 0));
}

// A wait is released by a host store and by another stream's write, in device memory as in host memory.
static void releases(void) {
    void *other = masked_stream();
    uint64_t *d = device_bytes(64);
    OK(hipMemset(d, 0, 64));
    OK(hipStreamWaitValue64(s, &d[3], 1, WAIT_GTE, ~0ull));
    CHECK(ends_parked());
    OK(hipStreamWriteValue64(other, &d[3], 1, 0));
    OK(hipStreamSynchronize(s));
    OK(hipFree(d));
    OK(hipStreamDestroy(other));
}

// Where only the host releases, a stream's write is seen by the host and by no wait.
static void host_releases(void) {
    begin("write_releases=0");
    void *a = new_stream(), *b = masked_stream();
    uint64_t *v = host_words(64);
    OK(hipStreamWaitValue64(a, v, 5, WAIT_GTE, ~0ull));
    OK(hipStreamWriteValue64(b, v, 5, 0));
    OK(hipStreamSynchronize(b));
    CHECK(load(v) == 5);
    CHECK(ends_parked());
    store(v, 6);
    OK(hipStreamSynchronize(a));
    OK(hipStreamDestroy(a));
    OK(hipStreamDestroy(b));
    OK(hipHostFree(v));
}

// What a stream wrote to memory that is given back says nothing of what comes to lie there.
static void host_releases_new_memory(void) {
    begin("write_releases=0");
    void *a = new_stream();
    static uint64_t word[8];
    for (int lap = 0; lap < 2; lap++) {
        store(word, 0);
        OK(hipHostRegister(word, sizeof word, 0));
        if (lap == 0) {
            OK(hipStreamWriteValue64(a, word, 5, 0));
            OK(hipStreamSynchronize(a));
        } else {
            OK(hipStreamWaitValue64(a, word, 5, WAIT_GTE, ~0ull));
            CHECK(ends_parked());
            store(word, 5);
            OK(softhip_settle(20000));
            CHECK(hipStreamQuery(a) == 0);
            store(word, 6);
            OK(hipStreamSynchronize(a));
        }
        OK(hipHostUnregister(word));
    }
    OK(hipStreamDestroy(a));
}

// HIP 7 resolves the address against the current device.
static void current(void) {
    begin("devices=2 hip=7.2.0");
    void *a = new_stream();
    uint64_t *v = host_words(64);
    OK(hipSetDevice(1));
    GIVES(1, hipStreamWriteValue64(a, v, 1, 0));
    OK(hipSetDevice(0));
    OK(hipStreamWriteValue64(a, v, 1, 0));
    OK(hipStreamSynchronize(a));
    OK(hipStreamDestroy(a));
    OK(hipHostFree(v));
    begin("hip=6.2.0 devices=2");
    a = new_stream();
    v = host_words(64);
    OK(hipSetDevice(1));
    OK(hipStreamWriteValue64(a, v, 1, 77)); // flags are ignored too
    OK(hipStreamSynchronize(a));
    OK(hipStreamDestroy(a));
    OK(hipHostFree(v));
}

void test_waits(void) {
    begin("");
    s = new_stream();
    w = host_words(4096);
    conditions();
    errors();
    releases();
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    host_releases();
    host_releases_new_memory();
    current();
}
