#include "check.h"

static void *stale_words(unsigned flags) {
    void *p = NULL;
    OK(hipHostMalloc(&p, 65536, flags));
    return p;
}

// word_seen says whether the host sees a stream's write at once, in memory of these flags; after a sync it must.
static bool word_seen(unsigned flags) {
    uint64_t *w = stale_words(flags);
    void *s = new_stream();
    OK(hipStreamWriteValue64(s, w, 7, 0));
    OK(softhip_settle(20000));
    bool seen = load(w) == 7;
    OK(hipStreamSynchronize(s));
    CHECK(load(w) == 7);
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    return seen;
}

// A wait on a non-coherent word does not see the host's store.
static void wait_is_blind(void) {
    begin("");
    uint64_t *w = stale_words(HOST_NON_COHERENT);
    void *s = new_stream();
    OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    store(w, 1);
    CHECK(ends_parked());
    softhip_reset();
}

// bytes_after_wait gives what a blit of 8 bytes after a wait brings to the device of what the host stored before it.
static uint64_t bytes_after_wait(const char *settings, unsigned flags, size_t bytes) {
    begin(settings);
    uint64_t *data = stale_words(flags), *w = host_words(64), *back = host_words(65536);
    uint64_t *d = device_bytes(65536);
    void *s = new_stream();
    OK(hipMemcpyAsync(d, data, bytes, COPY_DEFAULT, s)); // the device has them in its cache
    OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    OK(hipMemcpyAsync(d, data, bytes, COPY_DEFAULT, s));
    OK(hipMemcpyAsync(back, d, bytes, COPY_DEFAULT, s));
    OK(softhip_settle(20000));
    data[0] = 77;
    store(w, 1);
    OK(hipStreamSynchronize(s));
    uint64_t got = back[0];
    OK(hipStreamDestroy(s));
    OK(hipHostFree(data));
    OK(hipHostFree(w));
    OK(hipHostFree(back));
    OK(hipFree(d));
    return got;
}

// Without a wait before it, a blit acquires: it reads what the host has stored.
static void blit_acquires(void) {
    begin("");
    uint64_t *data = stale_words(HOST_NON_COHERENT), back = 0;
    uint64_t *d = device_bytes(64);
    void *s = new_stream();
    for (uint64_t i = 1; i <= 3; i++) {
        data[0] = i;
        OK(hipMemcpyAsync(d, data, 64, COPY_DEFAULT, s));
        OK(hipStreamSynchronize(s));
        OK(hipMemcpy(&back, d, 8, COPY_DEFAULT));
        CHECK(back == i);
    }
    OK(hipStreamDestroy(s));
    OK(hipFree(d));
    OK(hipHostFree(data));
}

// A write releases what the stream did before it.
static void write_releases(void) {
    begin("");
    char *data = stale_words(HOST_NON_COHERENT), *d = device_bytes(64);
    uint64_t *w = host_words(64);
    void *s = new_stream();
    OK(hipMemset(d, 0x33, 64));
    OK(hipMemcpyAsync(data, d, 64, COPY_DEFAULT, s)); // a blit, which writes into the device's cache
    OK(softhip_settle(20000));
    CHECK(data[5] == 0);
    OK(hipStreamWriteValue64(s, w, 1, 0));
    while (load(w) != 1) {
    }
    CHECK(data[5] == 0x33);
    void *e = NULL;
    OK(hipEventCreateWithFlags(&e, EVENT_NO_TIMING));
    OK(hipMemset(d, 0x44, 64));
    OK(hipMemcpyAsync(data, d, 64, COPY_DEFAULT, s));
    OK(hipEventRecord(e, s));
    while (hipEventQuery(e) == 600) {
    }
    CHECK(data[5] == 0x44); // an event does too
    OK(hipEventDestroy(e));
    OK(hipStreamDestroy(s));
    OK(hipFree(d));
    OK(hipHostFree(data));
    OK(hipHostFree(w));
}

void test_coherence(void) {
    begin("");
    CHECK(word_seen(0));
    CHECK(word_seen(HOST_MAPPED | HOST_COHERENT));
    CHECK(word_seen(HOST_MAPPED));
    CHECK(word_seen(HOST_COHERENT));
    CHECK(word_seen(HOST_NUMA_USER | HOST_PORTABLE));
    CHECK(!word_seen(HOST_PORTABLE));
    CHECK(!word_seen(HOST_WRITE_COMBINED));
    CHECK(!word_seen(HOST_NON_COHERENT));
    begin("host_coherent=1");
    CHECK(word_seen(HOST_PORTABLE));
    wait_is_blind();
    CHECK(bytes_after_wait("", HOST_NON_COHERENT, 64) == 0); // stale: a wait does not acquire
    CHECK(bytes_after_wait("relaxed_waits=0", HOST_NON_COHERENT, 64) == 77);
    CHECK(bytes_after_wait("", HOST_COHERENT, 64) == 77);
    CHECK(bytes_after_wait("", HOST_NON_COHERENT, 20000) == 77); // SDMA has no cache
    blit_acquires();
    write_releases();
}
