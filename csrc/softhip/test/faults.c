#include "check.h"

static void *s;
static uint64_t *w;
static char *d, *h;

static void setup(const char *settings) {
    begin(settings);
    s = new_stream();
    w = host_words(4096);
    d = device_bytes(1 << 16);
    h = (char *)host_words(1 << 16);
}

static void calls(void) {
    void *p = NULL;
    setup("");
    OK(softhip_fault("call=hipMalloc nth=3 code=2"));
    for (int i = 1; i <= 5; i++) {
        p = NULL;
        GIVES(i == 3 ? 2 : 0, hipMalloc(&p, 8));
        CHECK((p == NULL) == (i == 3));
    }
    OK(softhip_fault("call=hipEventQuery code=999 times=0"));
    GIVES(999, hipEventQuery(NULL));
    GIVES(999, hipEventQuery(NULL));
    OK(softhip_fault("call=hipStreamQuery code=1 times=2"));
    GIVES(1, hipStreamQuery(s));
    GIVES(1, hipStreamQuery(s));
    GIVES(0, hipStreamQuery(s));
    static const char *const wrong[] = {"call=hipNo code=1", "call=hipMalloc", "copy=maybe", "nth=3", "async", "device=9 lost=1", "sky=falls"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        GIVES(-1, softhip_fault(wrong[i]));
    begin("");
    GIVES(400, hipEventQuery(NULL)); // faults end with their world
}

// An operation that fails is told by every later call, and nothing behind it runs.
static void later(void) {
    setup("");
    OK(softhip_fault("async=700 nth=2"));
    OK(hipStreamWriteValue64(s, &w[0], 1, 0));
    OK(hipStreamWriteValue64(s, &w[1], 1, 0));
    int queued = hipStreamWriteValue64(s, &w[2], 1, 0);
    CHECK(queued == 0 || queued == 700);
    int code;
    while ((code = hipStreamQuery(s)) == 600) {
    }
    CHECK(code == 700);
    GIVES(700, hipStreamSynchronize(s));
    GIVES(700, hipMemcpyAsync(d, h, 8, COPY_DEFAULT, s));
    void *p = NULL;
    GIVES(700, hipMalloc(&p, 8));
    CHECK(load(&w[0]) == 1 && load(&w[1]) == 0 && load(&w[2]) == 0);
    GIVES(700, hipFree(d)); // given back, and told
    GIVES(700, hipStreamDestroy(s));
    GIVES(700, hipHostFree(w));
    GIVES(700, hipHostFree(h));
    char text[1024];
    CHECK(softhip_leaks(text, sizeof text) == 0);
}

static void copies(void) {
    setup("");
    memset(h, 5, 64);
    OK(hipMemset(d, 0, 64));
    OK(softhip_fault("copy=drop"));
    OK(hipStreamWriteValue64(s, w, 1, 0)); // no copy, so not the one
    OK(hipMemcpyAsync(d, h, 64, COPY_DEFAULT, s));
    OK(hipMemcpyAsync(h, d, 64, COPY_DEFAULT, s));
    OK(hipStreamSynchronize(s));
    CHECK(h[3] == 0);

    // Late: the bytes change when the caller has long given up.
    memset(h, 0, 64);
    OK(hipMemset(d, 7, 64));
    OK(softhip_fault("copy=late nth=1"));
    OK(hipMemcpyAsync(h, d, 64, COPY_DEFAULT, s));
    OK(softhip_settle(20000));
    GIVES(600, hipStreamQuery(s));
    CHECK(h[3] == 0);
    softhip_land();
    OK(hipStreamSynchronize(s));
    CHECK(h[3] == 7);
    OK(softhip_fault("copy=late us=20000"));
    OK(hipMemcpyAsync(h, d, 64, COPY_DEFAULT, s));
    GIVES(600, hipStreamQuery(s));
    OK(hipStreamSynchronize(s));

    // Lost: it never ends, and an SDMA ring with it.
    void *other = masked_stream();
    OK(softhip_fault("copy=lost"));
    OK(hipMemcpyAsync(h, d, 1 << 16, COPY_DEVICE_TO_HOST, s));
    OK(hipMemcpyAsync(h, d, 1 << 16, COPY_DEVICE_TO_HOST, other));
    CHECK(ends_parked());
    GIVES(600, hipStreamQuery(s));
    GIVES(600, hipStreamQuery(other));
    char text[4096];
    softhip_parked(text, sizeof text);
    CHECK(strstr(text, "never ends; 1 behind it") != NULL);
    softhip_reset();
}

static void hangs(void) {
    char spec[64];
    setup("");
    void *other = masked_stream();
    snprintf(spec, sizeof spec, "queue=%d hang=1", softhip_queue(s));
    OK(softhip_fault(spec));
    OK(hipStreamWriteValue64(s, &w[0], 1, 0));
    OK(hipStreamWriteValue64(other, &w[1], 1, 0));
    OK(hipStreamSynchronize(other));
    CHECK(ends_parked());
    CHECK(load(&w[0]) == 0 && load(&w[1]) == 1);
    softhip_reset();
}

// A lost device parks nobody: what waited ends, each call tells.
static void lost(void) {
    setup("");
    void *other = masked_stream();
    OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    OK(hipMemcpyAsync(h, d, 1 << 16, COPY_DEVICE_TO_HOST, s));     // waits for the wait
    OK(hipMemcpyAsync(h, d, 1 << 16, COPY_DEVICE_TO_HOST, other)); // behind it in the ring
    CHECK(ends_parked());
    OK(softhip_fault("device=0 lost=1"));
    GIVES(719, hipStreamSynchronize(s));
    GIVES(719, hipDeviceSynchronize());
    CHECK(!ends_parked());
    begin("");
    OK(hipDeviceSynchronize());
}

void test_faults(void) {
    calls();
    later();
    copies();
    hangs();
    lost();
}
