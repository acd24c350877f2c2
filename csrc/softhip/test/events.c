#include <pthread.h>
#include <unistd.h>

#include "check.h"

static void *new_event(unsigned flags) {
    void *e = NULL;
    OK(hipEventCreateWithFlags(&e, flags));
    return e;
}

static void states(void) {
    begin("");
    void *s = new_stream(), *e = new_event(0), *f = new_event(0), *quiet = new_event(EVENT_NO_TIMING);
    uint64_t *w = host_words(64);
    float ms = -1;
    OK(hipEventQuery(e)); // never recorded
    GIVES(400, hipEventElapsedTime(&ms, e, f));
    OK(hipEventRecord(e, s));
    OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    OK(hipEventRecord(f, s));
    OK(hipEventSynchronize(e));
    GIVES(600, hipEventQuery(f));
    GIVES(600, hipStreamQuery(s));
    GIVES(600, hipEventElapsedTime(&ms, e, f));
    store(w, 1);
    OK(hipEventSynchronize(f));
    OK(hipEventQuery(f));
    OK(hipEventElapsedTime(&ms, e, f));
    CHECK(ms > 0 && ms < 60000);
    OK(hipEventRecord(quiet, s));
    OK(hipStreamSynchronize(s));
    GIVES(400, hipEventElapsedTime(&ms, e, quiet));
    GIVES(1, hipEventCreateWithFlags(&e, EVENT_TO_DEVICE | EVENT_TO_SYSTEM));
    OK(hipEventDestroy(f));
    GIVES(400, hipEventQuery(f));
    GIVES(400, hipEventDestroy(&ms));
    OK(hipEventDestroy(quiet));
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
}

// A stream waits for another one's event, also one of another device, and blocks its queue meanwhile.
static void crossing(void) {
    begin("devices=2 hip=6.2.0");
    void *a = new_stream(), *e = new_event(EVENT_NO_TIMING);
    uint64_t *w = host_words(64);
    OK(hipSetDevice(1));
    void *b = new_stream();
    GIVES(400, hipEventRecord(e, b)); // an event of the other device
    OK(hipStreamWaitValue64(a, w, 1, WAIT_GTE, ~0ull));
    OK(hipStreamWriteValue64(a, &w[1], 1, 0));
    OK(hipEventRecord(e, a));
    OK(hipStreamWaitEvent(b, e, 0));
    OK(hipStreamWriteValue64(b, &w[2], 1, 0));
    CHECK(ends_parked());
    char text[8192];
    softhip_parked(text, sizeof text);
    CHECK(strstr(text, "hipStreamWaitEvent") != NULL && strstr(text, "waits for operation 3 of queue") != NULL);
    CHECK(load(&w[2]) == 0);
    store(w, 1);
    OK(hipStreamSynchronize(b));
    CHECK(load(&w[1]) == 1 && load(&w[2]) == 1);
    OK(hipStreamDestroy(b));
    OK(hipSetDevice(0));
    OK(hipStreamDestroy(a));
    OK(hipEventDestroy(e));
    OK(hipHostFree(w));
}

static int inside;
static void callback(void *arg) {
    int n;
    inside = hipGetDeviceCount(&n);
    store(arg, 1);
}

static void host_functions(void) {
    begin("");
    void *s = new_stream();
    uint64_t *w = host_words(64);
    GIVES(1, hipLaunchHostFunc(s, NULL, w));
    OK(hipLaunchHostFunc(s, callback, w));
    OK(hipStreamSynchronize(s));
    CHECK(load(w) == 1);
    CHECK(inside == 401); // HIP's functions are refused there
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
}

static void *synchronize(void *s) {
    hipStreamSynchronize(s);
    return NULL;
}

static void *query(void *s) {
    return hipStreamQuery(s) == 0 ? s : NULL; // 600 where it did not have to wait
}

// With the stream's lock held by a synchronize, a query of the stream waits until the stream has ended.
static void *query_beside_synchronize(const char *settings) {
    begin(settings);
    void *s = new_stream(), *through = NULL;
    uint64_t *w = host_words(64);
    pthread_t sync, ask;
    OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    OK(softhip_settle(20000));
    OK(pthread_create(&sync, NULL, synchronize, s));
    usleep(100000);
    OK(pthread_create(&ask, NULL, query, s));
    usleep(100000);
    store(w, 1);
    pthread_join(ask, &through);
    pthread_join(sync, NULL);
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    return through;
}

void test_events(void) {
    states();
    crossing();
    host_functions();
    CHECK(query_beside_synchronize("stream_lock=1") != NULL);
    CHECK(query_beside_synchronize("") == NULL);
}
