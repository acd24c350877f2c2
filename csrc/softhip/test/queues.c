#include "check.h"

enum { PARKED = 6 };

// moves says whether a write on s gets through while six other streams are parked.
static bool moves(const char *settings, void *(*make)(void)) {
    begin(settings);
    uint64_t *w = host_words(4096);
    void *parked[PARKED];
    for (int i = 0; i < PARKED; i++) {
        parked[i] = new_stream();
        OK(hipStreamWaitValue64(parked[i], &w[i], 1, WAIT_GTE, ~0ull));
    }
    void *s = make();
    OK(hipStreamWriteValue64(s, &w[100], 5, 0));
    OK(softhip_settle(20000));
    bool moved = load(&w[100]) == 5;
    CHECK(moved == (hipStreamQuery(s) == 0));
    for (int i = 0; i < PARKED; i++)
        store(&w[i], 1);
    OK(hipStreamSynchronize(s));
    CHECK(load(&w[100]) == 5);
    for (int i = 0; i < PARKED; i++)
        OK(hipStreamDestroy(parked[i]));
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    return moved;
}

static void *high(void) {
    void *s = NULL;
    OK(hipStreamCreateWithPriority(&s, STREAM_NON_BLOCKING, -1));
    return s;
}

// A masked stream's queue is its own for as long as it lives, and serves the next one after it.
static void masked(void) {
    begin("hw_queues=1");
    void *a = masked_stream(), *b = masked_stream(), *c = new_stream();
    int first = softhip_queue(a);
    CHECK(first != softhip_queue(b) && first != softhip_queue(c));
    OK(hipStreamDestroy(a));
    void *d = masked_stream();
    CHECK(softhip_queue(d) == first);
    void *s = NULL;
    uint32_t none = 0;
    GIVES(1, hipExtStreamCreateWithCUMask(&s, 1, &none));
    GIVES(1, hipExtStreamCreateWithCUMask(&s, 0, NULL));
    OK(hipStreamDestroy(b));
    OK(hipStreamDestroy(c));
    OK(hipStreamDestroy(d));
    GIVES(709, hipStreamDestroy(d));
    GIVES(400, hipStreamDestroy(NULL));
}

// A stream's operations run in order across the queue and the rings.
static void order(void) {
    begin("integrated=1");
    void *s = new_stream();
    unsigned char *d = device_bytes(1 << 20), *h = (unsigned char *)host_words(1 << 20);
    bool right = true;
    for (int round = 0; round < 50; round++) {
        OK(hipMemsetAsync(d, round, 1 << 20, s));
        OK(hipMemcpyAsync(h, d, 1 << 20, COPY_DEVICE_TO_HOST, s));
        OK(hipMemcpyAsync(d, h, 17000, COPY_HOST_TO_DEVICE, s));
        OK(hipMemcpyAsync(d + 17000, h, 100, COPY_HOST_TO_DEVICE, s));
        OK(hipStreamSynchronize(s));
        right = right && h[0] == round && h[(1 << 20) - 1] == round && d[17050] == round;
    }
    CHECK(right);
    OK(hipStreamDestroy(s));
    OK(hipFree(d));
    OK(hipHostFree(h));
}

void test_queues(void) {
    CHECK(!moves("", new_stream));
    CHECK(moves("", masked_stream));
    CHECK(moves("", high));
    CHECK(!moves("ignore_priority=1", high));
    CHECK(moves("hw_queues=8", new_stream));
    CHECK(!moves("hw_queues=1", new_stream));
    masked();
    order();
}
