#include <pthread.h>
#include <unistd.h>

#include "check.h"

static void steps(void) {
    begin("");
    void *s = new_stream();
    uint64_t *w = host_words(4096);
    int queue = softhip_queue(s);
    OK(softhip_hold(queue));
    for (uint64_t i = 1; i <= 5; i++)
        OK(hipStreamWriteValue64(s, w, i, 0));
    OK(softhip_settle(20000));
    CHECK(load(w) == 0);
    for (uint64_t i = 1; i <= 3; i++) {
        OK(softhip_step(queue, 1));
        OK(softhip_settle(20000));
        CHECK(load(w) == i);
    }
    char text[4096];
    softhip_parked(text, sizeof text);
    CHECK(strstr(text, "operation 4 hipStreamWriteValue64") != NULL && strstr(text, "is held; 1 behind it") != NULL);
    OK(softhip_release(queue));
    OK(hipStreamSynchronize(s));
    CHECK(load(w) == 5);
    GIVES(-1, softhip_hold(999));
    GIVES(-1, softhip_ring(0, 2));
    CHECK(softhip_ring(0, 0) != softhip_ring(0, 1));
    CHECK(softhip_queue(text) == -1);
    softhip_op ops[10];
    CHECK(softhip_trace(ops, 10) == 5);
    for (int i = 0; i < 5; i++)
        CHECK(ops[i].number == (uint64_t)i + 1 && ops[i].value == (uint64_t)i + 1 && ops[i].queue == queue &&
              ops[i].stream == (uint64_t)(uintptr_t)s && ops[i].start_ns >= ops[i].queued_ns && ops[i].end_ns >= ops[i].start_ns);
    CHECK(softhip_trace(ops, 2) == 2 && ops[1].number == 5);
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    softhip_reset();
    CHECK(softhip_trace(ops, 10) == 0);
}

enum { THREADS = 4, ROUNDS = 400 };
static uint64_t *words;

// Each thread has a stream, a copy and a handshake with itself over and over.
static void *churn(void *arg) {
    size_t me = (size_t)(uintptr_t)arg;
    uint64_t *mine = words + me * 512;
    for (int outer = 0; outer < 4; outer++) {
        void *s = me % 2 ? new_stream() : masked_stream(), *e = NULL;
        uint64_t *d = device_bytes(65536);
        OK(hipEventCreateWithFlags(&e, EVENT_NO_TIMING));
        for (uint64_t i = 1; i <= ROUNDS / 4; i++) {
            mine[2] = i;
            store(&mine[1], 0);
            OK(hipStreamWriteValue64(s, &mine[0], i, 0));
            OK(hipStreamWaitValue64(s, &mine[1], i, WAIT_GTE, ~0ull));
            OK(hipMemcpyAsync(d, &mine[2], 8, COPY_DEFAULT, s));
            OK(hipMemcpyAsync(&mine[3], d, 8, COPY_DEFAULT, s));
            OK(hipEventRecord(e, s));
            while (load(&mine[0]) != i)
                hipEventQuery(e);
            store(&mine[1], i);
            OK(hipEventSynchronize(e));
            CHECK(mine[3] == i);
        }
        OK(hipEventDestroy(e));
        OK(hipStreamDestroy(s));
        OK(hipFree(d));
    }
    return NULL;
}

static void threads(void) {
    begin("hw_queues=8"); // each parked stream has a queue
    words = host_words(THREADS * 4096);
    pthread_t t[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        OK(pthread_create(&t[i], NULL, churn, (void *)i));
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    OK(hipHostFree(words));
    char text[1024];
    CHECK(softhip_leaks(text, sizeof text) == 0 && softhip_reports(text, sizeof text) == 0);
}

// Worlds come and go without leaving anything, whatever they were doing.
static void worlds(void) {
    for (int i = 0; i < 100; i++) {
        begin(i % 2 ? "integrated=1 devices=2" : "sdma_rings=1");
        void *s = new_stream();
        uint64_t *w = host_words(64);
        char *d = device_bytes(1 << 16);
        OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
        OK(hipMemcpyAsync(d, d, 1 << 15, COPY_DEFAULT, s));
        if (i % 3 == 0)
            OK(softhip_hold(softhip_queue(s)));
        softhip_reset();
    }
}

static void *destroyed(void *s) {
    hipStreamDestroy(s);
    return NULL;
}

static void *freed(void *p) {
    hipFree(p);
    return NULL;
}

// A world ends once the calls under way have returned, which it lets go on; calls that come then meet the next world.
static void worlds_in_use(void) {
    char text[1024];
    for (int i = 0; i < 30; i++) {
        begin("");
        void *s = new_stream();
        uint64_t *w = host_words(64);
        char *d = device_bytes(64);
        OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
        OK(hipMemsetAsync(d, 1, 64, s));
        pthread_t t[2];
        OK(pthread_create(&t[0], NULL, freed, d));
        while (softhip_reports(text, sizeof text) == 0)
            usleep(100); // until it waits for the stream
        OK(pthread_create(&t[1], NULL, destroyed, s));
        softhip_reset();
        for (int k = 0; k < 2; k++)
            pthread_join(t[k], NULL);
    }
}

// What an ended world gave is nothing of the next: not memory, not a stream, though these get their own anew.
static void stale(void) {
    for (int i = 0; i < 10; i++) {
        void *old[3], *new[3];
        for (int k = 0; k < 2; k++) {
            void **all = k == 0 ? old : new;
            begin("");
            all[0] = device_bytes(1 << 20);
            all[1] = host_words(4096);
            all[2] = new_stream();
        }
        CHECK(hipFree(old[0]) != 0 && hipHostFree(old[1]) != 0 && hipStreamDestroy(old[2]) != 0);
        OK(hipMemsetAsync(new[0], 1, 1 << 20, new[2]));
        memset(new[1], 1, 4096);
        OK(hipStreamSynchronize(new[2]));
        OK(hipFree(new[0]));
        OK(hipHostFree(new[1]));
        OK(hipStreamDestroy(new[2]));
    }
}

void test_control(void) {
    steps();
    threads();
    worlds();
    worlds_in_use();
    stale();
}
