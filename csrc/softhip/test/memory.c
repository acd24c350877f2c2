#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static sigjmp_buf out;
static void fault(int signal) {
    (void)signal;
    siglongjmp(out, 1);
}

// faults says whether touching p ends in SIGSEGV.
static bool faults(volatile char *p) {
    struct sigaction mine = {.sa_handler = fault}, before;
    sigaction(SIGSEGV, &mine, &before);
    bool hit = true;
    if (sigsetjmp(out, 1) == 0) {
        *p = 1;
        hit = false;
    }
    sigaction(SIGSEGV, &before, NULL);
    return hit;
}

__attribute__((unused)) static void touch(void) {
    begin("integrated=0");
    char *p = device_bytes(100), byte = 42, back = 0;
    CHECK(faults(p));
    OK(hipMemcpy(p + 7, &byte, 1, COPY_DEFAULT));
    OK(hipMemcpy(&back, p + 7, 1, COPY_DEFAULT));
    CHECK(back == 42);
    OK(hipFree(p));
    begin("integrated=1");
    p = device_bytes(4096);
    CHECK(!faults(p));
    CHECK(faults(p + 4096)); // the guard pages
    CHECK(faults(p - 1));
    OK(hipFree(p));
    CHECK(faults(p)); // never quietly someone else's
    char *q = device_bytes(4096);
    CHECK(q != p);
    OK(hipFree(q));
}

static void registry(void) {
    begin("hip=7.15.1 devices=2");
    hipPointerAttribute a;
    void *base;
    size_t size;
    char *p = device_bytes(1000), *h = (char *)host_words(64);
    OK(hipPointerGetAttributes(&a, p + 10));
    CHECK(a.type == 2 && a.device == 0 && a.devicePointer == p + 10 && a.hostPointer == NULL);
    OK(hipPointerGetAttributes(&a, h + 8));
    CHECK(a.type == 1 && a.hostPointer == h + 8 && a.devicePointer == h + 8);
    OK(hipPointerGetAttributes(&a, &a));
    CHECK(a.type == 0);
    OK(hipMemGetAddressRange(&base, &size, p + 999));
    CHECK(base == p && size == 1000);
    GIVES(17, hipMemGetAddressRange(&base, &size, p + 1000));
    OK(hipHostGetDevicePointer(&base, h, 0));
    CHECK(base == h);
    GIVES(1, hipHostGetDevicePointer(&base, p, 0));
    OK(hipSetDevice(1));
    char *q = device_bytes(8);
    OK(hipPointerGetAttributes(&a, q));
    CHECK(a.device == 1);
    static char mine[8192];
    OK(hipHostRegister(mine, sizeof mine, 0));
    GIVES(712, hipHostRegister(mine + 100, 8, 0));
    GIVES(713, hipHostUnregister(mine + 100));
    OK(hipPointerGetAttributes(&a, mine + 5));
    CHECK(a.type == 1);
    OK(hipHostUnregister(mine));
    GIVES(713, hipHostUnregister(mine));
    GIVES(1, hipFree(p + 8));
    GIVES(1, hipHostFree(p));
    OK(hipFree(p));
    OK(hipFree(q));
    OK(hipHostFree(h));
    OK(hipFree(NULL));
    begin("hip=5.7.1");
    p = device_bytes(8);
    h = (char *)host_words(8);
    OK(hipPointerGetAttributes(&a, p));
    CHECK(a.type == 1);
    OK(hipPointerGetAttributes(&a, h));
    CHECK(a.type == 0);
    GIVES(1, hipPointerGetAttributes(&a, &a));
    OK(hipFree(p));
    OK(hipHostFree(h));
}

static void sizes(void) {
    begin("memory_mb=1");
    void *p = &p;
    size_t available, total;
    OK(hipMalloc(&p, 0));
    CHECK(p == NULL);
    GIVES(2, hipMalloc(&p, (1 << 20) + 1));
    p = device_bytes(1 << 19);
    OK(hipMemGetInfo(&available, &total));
    CHECK(available == 1 << 19 && total == 1 << 20);
    void *q = NULL;
    GIVES(2, hipMalloc(&q, (1 << 19) + 1));
    OK(hipFree(p));
    GIVES(1, hipMalloc(NULL, 8));
    GIVES(1, hipHostMalloc(&p, 8, HOST_COHERENT | HOST_NON_COHERENT));
    GIVES(1, hipHostMalloc(&p, 8, 0x100));
    GIVES(1, hipExtMallocWithFlags(&p, 16, EXT_SIGNAL));
    OK(hipExtMallocWithFlags(&p, 8, EXT_SIGNAL));
    OK(hipFree(p));
}

static void dirty(const char *settings, uint64_t want) {
    begin(settings);
    uint64_t *d = device_bytes(64), *w = host_words(64), back = 1;
    OK(hipMemcpy(&back, d, 8, COPY_DEFAULT));
    CHECK(back == want && w[7] == want);
    OK(hipFree(d));
    OK(hipHostFree(w));
}

static void misuse(void) {
    char text[4096];
    begin("integrated=1");
    void *s = new_stream();
    char *p = device_bytes(64);
    uint64_t *w = host_words(8);
    OK(hipFree(p));
    GIVES(1, hipFree(p));
    GIVES(1, hipMemsetAsync(p, 1, 8, s));
    softhip_reports(text, sizeof text);
    CHECK(strstr(text, "freed twice") != NULL);
    CHECK(strstr(text, "which was freed") != NULL);
    char *q = device_bytes(64);
    OK(softhip_hold(softhip_queue(s)));
    OK(hipMemsetAsync(q, 1, 8, s));
    softhip_leaks(text, sizeof text);
    CHECK(strstr(text, "device memory") != NULL && strstr(text, "pinned host memory") != NULL && strstr(text, "streams: 1") != NULL);
    OK(softhip_fault("call=hipFree nth=2 code=2")); // counts from now
    OK(softhip_step(softhip_queue(s), 1));
    OK(hipStreamSynchronize(s));
    OK(softhip_release(softhip_queue(s)));
    OK(hipFree(q));
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    CHECK(softhip_leaks(text, sizeof text) == 0 && text[0] == 0);
}

static void *free_it(void *p) {
    OK(hipFree(p));
    return NULL;
}

// A free waits for whatever the device has queued, parked streams too, and tells when that uses the memory.
static void free_waits(void) {
    char text[4096];
    begin("");
    void *s = new_stream();
    uint64_t *w = host_words(64);
    char *d = device_bytes(64), *idle = device_bytes(64);
    OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    OK(hipMemsetAsync(d, 1, 64, s));
    pthread_t t[2];
    OK(pthread_create(&t[0], NULL, free_it, idle));
    OK(pthread_create(&t[1], NULL, free_it, d));
    while (softhip_reports(text, sizeof text) == 0)
        usleep(100);
    CHECK(strstr(text, "(64 bytes) was freed while 1 queued operations use it") != NULL);
    usleep(50000);
    CHECK(pthread_tryjoin_np(t[0], NULL) == EBUSY);
    CHECK(pthread_tryjoin_np(t[1], NULL) == EBUSY);
    store(w, 1);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
}

static void export_fd(void) {
    begin("integrated=0");
    char *p = device_bytes(8192), byte = 9;
    int fd = -1;
    OK(hipMemcpy(p + 4096, &byte, 1, COPY_DEFAULT));
    OK(hipMemGetHandleForAddressRange(&fd, p, 8192, 1, 0));
    char *view = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(view != MAP_FAILED && view[4096] == 9);
    munmap(view, 8192);
    close(fd);
    GIVES(1, hipMemGetHandleForAddressRange(&fd, p, 8193, 1, 0));
    GIVES(1, hipMemGetHandleForAddressRange(&fd, p, 8192, 2, 0));
    OK(hipFree(p));
}

void test_memory(void) {
#ifndef NO_TOUCH
    touch();
#endif
    registry();
    sizes();
    dirty("", 0);
    dirty("dirty=1", 0xdbdbdbdbdbdbdbdbull);
    misuse();
    export_fd();
    free_waits();
}
