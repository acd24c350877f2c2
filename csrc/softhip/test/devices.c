#include "check.h"

static void no_gpu(void) {
    int v = -1, n = -1;
    begin("no_gpu=101 hip=5.2.21153");
    GIVES(101, hipInit(0));
    GIVES(100, hipGetDeviceCount(&n));
    CHECK(n == 0);
    GIVES(1, hipGetDeviceCount(NULL));
    GIVES(101, hipGetDevice(&v));
    GIVES(101, hipSetDevice(0));
    GIVES(101, hipDeviceGetAttribute(&v, 10013, 0));
    CHECK(v == -1);
    void *p = &v;
    GIVES(101, hipMalloc(&p, 16));
    GIVES(101, hipStreamCreateWithFlags(&p, 0));
    CHECK(p == &v);
    GIVES(101, hipStreamWaitValue64(NULL, &v, 0, 0, 0));
    GIVES(101, hipPeekAtLastError());
    GIVES(101, hipGetLastError());
    GIVES(101, hipGetLastError()); // not cleared: it fails to initialise too
    OK(hipRuntimeGetVersion(&v));
    CHECK(v == 50221153);
    begin("no_gpu=100");
    GIVES(100, hipInit(0));
    GIVES(100, hipGetDeviceCount(&n));
    GIVES(100, hipMalloc(&p, 16));
    begin("devices=0");
    GIVES(100, hipGetDeviceCount(&n));
    CHECK(n == 0);
}

static void questions(void) {
    int v = -1;
    char text[64];
    begin("devices=3 visible=2,0 integrated=1 hip=6.1.40091 arch=gfx90a");
    OK(hipInit(0));
    GIVES(1, hipInit(1));
    OK(hipGetDeviceCount(&v));
    CHECK(v == 2);
    OK(hipDeviceGetPCIBusId(text, sizeof text, 0));
    CHECK(strcmp(text, "0000:c7:00.0") == 0);
    OK(hipDeviceGetByPCIBusId(&v, "0000:c5:00.0"));
    CHECK(v == 1);
    GIVES(1, hipDeviceGetPCIBusId(text, 12, 0));
    GIVES(101, hipDeviceGetPCIBusId(text, 64, 2));
    GIVES(101, hipSetDevice(2));
    OK(hipDeviceGetAttribute(&v, 16, 0));
    CHECK(v == 1);
    OK(hipDeviceGetAttribute(&v, 10013, 0));
    CHECK(v == 1);
    GIVES(1, hipDeviceGetAttribute(&v, 4242, 0));
    OK(hipRuntimeGetVersion(&v));
    CHECK(v == 60140091);
    GIVES(1, hipGetLastError());
    GIVES(0, hipGetLastError());
    begin("stream_wait=0");
    OK(hipDeviceGetAttribute(&v, 10013, 0));
    CHECK(v == 0);
    void *s = new_stream(), *w = host_words(8);
    GIVES(801, hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    OK(hipStreamDestroy(s));
    OK(hipHostFree(w));
    begin("stream_wait=error");
    GIVES(1, hipDeviceGetAttribute(&v, 10013, 0));
}

static void layouts(void) {
    char p[8192];
    int v;
    begin("hip=7.2.0 integrated=1 arch=gfx1201");
    memset(p, 0x5a, sizeof p);
    OK(hipGetDevicePropertiesR0600(p, 0));
    CHECK(strcmp(p + 1160, "gfx1201") == 0);
    memcpy(&v, p + 584, 4);
    CHECK(v == 0xc5);
    memcpy(&v, p + 396, 4);
    CHECK(v == 1);
    CHECK(p[1472] == 0x5a);
    memset(p, 0x5a, sizeof p);
    OK(hipGetDeviceProperties(p, 0));
    CHECK(strcmp(p + 396, "gfx1201") == 0);
    memcpy(&v, p + 368, 4);
    CHECK(v == 0xc5);
    CHECK(p[792] == 0x5a);
}

static void symbols(void) {
    begin("hip=7.15.1");
    CHECK(softhip_find(NULL, "hipMalloc") == (void *)hipMalloc);
    CHECK(softhip_find(NULL, "hipMemGetHandleForAddressRange") != NULL);
    CHECK(softhip_find(NULL, "softhip_pause") != NULL);
    CHECK(softhip_find(NULL, "hipNoSuchThing") == NULL);
    begin("hip=5.2.1");
    CHECK(softhip_find(NULL, "hipGetDevicePropertiesR0600") == NULL);
    CHECK(softhip_find(NULL, "hipStreamBatchMemOp") == NULL);
    CHECK(softhip_find(NULL, "hipMemGetHandleForAddressRange") == NULL);
    CHECK(softhip_find(NULL, "hipStreamWaitValue64") != NULL);
    begin("missing=hipMemcpyAsync,hipExtStreamCreateWithCUMask");
    CHECK(softhip_find(NULL, "hipExtStreamCreateWithCUMask") == NULL);
    CHECK(softhip_find(NULL, "hipMemcpyAsync") == NULL);
    CHECK(softhip_find(NULL, "hipMemcpy") != NULL); // the longer name is another one
}

static void settings(void) {
    static const char *const wrong[] = {"devices=17", "devices=x", "colour=red", "hip=8.0.0", "hip=7", "devices", "visible=1",
                                        "capture_values=perhaps", "no_gpu=3", "stream_wait=2", "sdma_rings=0", "missing=hipMemcopy"};
    softhip_reset();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        GIVES(-1, softhip_configure(wrong[i]));
        CHECK(strstr(softhip_error(), "softhip: ") == softhip_error());
    }
    begin("");
    void *s = new_stream();
    uint64_t *w = host_words(8);
    OK(hipStreamWaitValue64(s, w, 1, WAIT_GTE, ~0ull));
    GIVES(-1, softhip_configure("devices=2")); // something is parked
    CHECK(strstr(softhip_error(), "parked") != NULL);
    store(w, 1);
    OK(hipStreamSynchronize(s));
    int n = 0;
    OK(softhip_configure("devices=2"));
    OK(hipGetDeviceCount(&n));
    CHECK(n == 2);
    GIVES(709, hipStreamSynchronize(s)); // of a world that has ended
    OK(hipGetDevice(&n));
    CHECK(n == 0);
}

void test_devices(void) {
    no_gpu();
    questions();
    layouts();
    symbols();
    settings();
}
