#include <pthread.h>

#include "check.h"

static void *s;
static uint64_t *w;
static char *d;

static void setup(const char *settings) {
    begin(settings);
    s = new_stream();
    w = host_words(4096);
    d = device_bytes(4096);
}

static void teardown(void) {
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    OK(hipFree(d));
    char text[1024];
    softhip_leaks(text, sizeof text);
    CHECK(text[0] == 0);
}

static void *instantiate(void *graph) {
    void *x = NULL;
    OK(hipGraphInstantiate(&x, graph, NULL, NULL, 0));
    OK(hipGraphDestroy(graph));
    return x;
}

static int status_of(void *stream) {
    int status = -1;
    OK(hipStreamIsCapturing(stream, &status));
    return status;
}

// Copies and sets join the graph and run at each launch, in order.
static void replay(void) {
    setup("");
    void *g = NULL;
    CHECK(status_of(s) == CAPTURE_NONE);
    OK(hipStreamBeginCapture(s, CAPTURE_THREAD_LOCAL));
    CHECK(status_of(s) == CAPTURE_ACTIVE);
    OK(hipMemcpyAsync(d, w, 8, COPY_DEFAULT, s));
    OK(hipMemcpyAsync(&w[1], d, 8, COPY_DEFAULT, s));
    OK(hipMemsetAsync(d, 0, 8, s));
    OK(hipMemcpyAsync(&w[2], d, 8, COPY_DEFAULT, s));
    OK(hipStreamEndCapture(s, &g));
    void *x = instantiate(g);
    w[2] = 1;
    OK(hipStreamSynchronize(s));
    CHECK(w[1] == 0 && w[2] == 1); // nothing has run
    for (uint64_t i = 1; i <= 20; i++) {
        w[0] = i;
        w[2] = 1;
        OK(hipGraphLaunch(x, s));
        OK(hipStreamSynchronize(s));
        CHECK(w[1] == i && w[2] == 0);
    }
    OK(hipGraphExecDestroy(x));
    GIVES(1, hipGraphLaunch(x, s));
    GIVES(1, hipGraphDestroy(g));
    teardown();
}

static void values(const char *settings, int wait_code, bool at_once, bool replayed) {
    setup(settings);
    void *g = NULL;
    OK(hipStreamBeginCapture(s, CAPTURE_RELAXED));
    GIVES(wait_code, hipStreamWriteValue64(s, w, 1, 0));
    OK(softhip_settle(20000));
    CHECK((load(w) == 1) == at_once);
    OK(hipStreamEndCapture(s, &g));
    void *x = instantiate(g);
    store(w, 0);
    OK(hipGraphLaunch(x, s));
    OK(hipStreamSynchronize(s));
    CHECK((load(w) == 1) == replayed);
    OK(hipGraphExecDestroy(x));
    teardown();
}

static void *allocate(void *code) {
    void *p = NULL;
    *(int *)code = hipMalloc(&p, 16);
    if (p != NULL)
        OK(hipFree(p));
    return NULL;
}

static void *allocate_relaxed(void *code) {
    int mode = CAPTURE_RELAXED;
    OK(hipThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == CAPTURE_GLOBAL);
    return allocate(code);
}

static int elsewhere(void *(*what)(void *)) {
    pthread_t t;
    int code = -1;
    OK(pthread_create(&t, NULL, what, &code));
    pthread_join(t, NULL);
    return code;
}

static void rules(void) {
    setup("");
    void *g = NULL, *e = NULL, *before = NULL;
    OK(hipEventCreateWithFlags(&e, EVENT_NO_TIMING));
    OK(hipEventCreateWithFlags(&before, EVENT_NO_TIMING));
    OK(hipEventRecord(before, s));
    GIVES(900, hipStreamBeginCapture(NULL, CAPTURE_GLOBAL));
    GIVES(401, hipStreamEndCapture(s, &g));
    GIVES(1, hipStreamBeginCapture(s, 3));

    OK(hipStreamBeginCapture(s, CAPTURE_RELAXED));
    GIVES(401, hipStreamBeginCapture(s, CAPTURE_RELAXED));
    GIVES(900, hipStreamQuery(s));
    GIVES(900, hipStreamSynchronize(s));
    CHECK(status_of(s) == CAPTURE_ACTIVE);
    OK(hipEventRecord(e, s));
    GIVES(907, hipEventQuery(e));
    GIVES(905, hipStreamWaitEvent(s, before, 0)); // work from outside
    CHECK(status_of(s) == CAPTURE_INVALIDATED);
    GIVES(901, hipMemsetAsync(d, 0, 8, s));
    GIVES(901, hipStreamEndCapture(s, &g));
    CHECK(g == NULL && status_of(s) == CAPTURE_NONE);

    // Allocating on another thread ends a Global capture, unless that thread is relaxed; others it leaves alone.
    OK(hipStreamBeginCapture(s, CAPTURE_GLOBAL));
    CHECK(elsewhere(allocate_relaxed) == 0);
    CHECK(status_of(s) == CAPTURE_ACTIVE);
    CHECK(elsewhere(allocate) == 900);
    CHECK(status_of(s) == CAPTURE_INVALIDATED);
    GIVES(901, hipStreamEndCapture(s, &g));
    OK(hipStreamBeginCapture(s, CAPTURE_THREAD_LOCAL));
    CHECK(elsewhere(allocate) == 0);
    void *p = NULL;
    int mode = CAPTURE_RELAXED;
    OK(hipThreadExchangeStreamCaptureMode(&mode));
    OK(hipMalloc(&p, 8)); // a relaxed thread may even while it captures itself
    OK(hipFree(p));
    OK(hipThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == CAPTURE_RELAXED);
    GIVES(900, hipMalloc(&p, 8));
    GIVES(901, hipStreamEndCapture(s, &g));
    OK(hipStreamBeginCapture(s, CAPTURE_RELAXED));
    CHECK(elsewhere(allocate) == 0);
    OK(hipMalloc(&p, 8));
    OK(hipFree(p));
    OK(hipStreamEndCapture(s, &g));
    OK(hipGraphDestroy(g));

    // The null stream orders itself against blocking streams, so a capture of one forbids it.
    void *blocking = NULL;
    OK(hipStreamCreateWithFlags(&blocking, STREAM_DEFAULT));
    OK(hipStreamBeginCapture(blocking, CAPTURE_RELAXED));
    GIVES(906, hipMemsetAsync(d, 0, 8, NULL));
    GIVES(901, hipStreamEndCapture(blocking, &g));
    OK(hipStreamBeginCapture(s, CAPTURE_RELAXED));
    OK(hipMemsetAsync(d, 0, 8, NULL)); // not of a non-blocking one
    OK(hipStreamEndCapture(s, &g));
    OK(hipGraphDestroy(g));
    OK(hipStreamDestroy(blocking));
    OK(hipEventDestroy(e));
    OK(hipEventDestroy(before));
    teardown();
}

static void *end(void *code) {
    void *g = NULL;
    *(int *)code = hipStreamEndCapture(s, &g);
    return NULL;
}

// A second stream joins by an event, and must be joined again.
static void fork_and_join(void) {
    setup("");
    void *g = NULL, *side = new_stream(), *fork = NULL, *join = NULL;
    OK(hipEventCreateWithFlags(&fork, EVENT_NO_TIMING));
    OK(hipEventCreateWithFlags(&join, EVENT_NO_TIMING));
    OK(hipStreamBeginCapture(s, CAPTURE_THREAD_LOCAL));
    OK(hipEventRecord(fork, s));
    OK(hipStreamWaitEvent(side, fork, 0));
    CHECK(status_of(side) == CAPTURE_ACTIVE);
    OK(hipMemcpyAsync(d, w, 8, COPY_DEFAULT, side));
    GIVES(903, hipStreamEndCapture(side, &g));
    GIVES(904, hipStreamEndCapture(s, &g));
    CHECK(status_of(side) == CAPTURE_NONE);
    OK(hipStreamBeginCapture(s, CAPTURE_THREAD_LOCAL));
    OK(hipEventRecord(fork, s));
    OK(hipStreamWaitEvent(side, fork, 0));
    OK(hipMemcpyAsync(d, w, 8, COPY_DEFAULT, side));
    OK(hipEventRecord(join, side));
    OK(hipStreamWaitEvent(s, join, 0));
    OK(hipMemcpyAsync(&w[1], d, 8, COPY_DEFAULT, s));
    CHECK(elsewhere(end) == 908);
    OK(hipStreamEndCapture(s, &g));
    void *x = instantiate(g);
    w[0] = 99;
    OK(hipGraphLaunch(x, s));
    OK(hipStreamSynchronize(s));
    CHECK(w[1] == 99);
    GIVES(907, hipStreamWaitEvent(s, join, 0)); // of a capture that is over
    OK(hipGraphExecDestroy(x));
    OK(hipEventDestroy(fork));
    OK(hipEventDestroy(join));
    OK(hipStreamDestroy(side));
    // Two captures cannot merge.
    void *other = new_stream(), *e = NULL;
    OK(hipEventCreateWithFlags(&e, EVENT_NO_TIMING));
    OK(hipStreamBeginCapture(s, CAPTURE_RELAXED));
    OK(hipStreamBeginCapture(other, CAPTURE_RELAXED));
    OK(hipEventRecord(e, other));
    GIVES(902, hipStreamWaitEvent(s, e, 0));
    GIVES(901, hipStreamEndCapture(s, &g));
    OK(hipStreamDestroy(other)); // in the middle of a capture
    OK(hipEventDestroy(e));
    teardown();
}

// A graph that names memory freed since is refused and reported.
static void freed(void) {
    setup("");
    void *g = NULL;
    char *p = device_bytes(64), text[4096];
    OK(hipStreamBeginCapture(s, CAPTURE_RELAXED));
    OK(hipMemsetAsync(p, 1, 64, s));
    OK(hipStreamEndCapture(s, &g));
    void *x = instantiate(g);
    OK(hipFree(p));
    GIVES(1, hipGraphLaunch(x, s));
    softhip_reports(text, sizeof text);
    CHECK(strstr(text, "which was freed") != NULL);
    OK(hipGraphExecDestroy(x));
    teardown();
}

void test_capture(void) {
    replay();
    values("capture_values=run", 0, true, false);
    values("capture_values=refuse", 900, false, false);
    values("capture_values=record", 0, false, true);
    rules();
    fork_and_join();
    freed();
}
