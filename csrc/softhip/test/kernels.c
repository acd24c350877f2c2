#include "check.h"

struct args {
    uint64_t *in, *out, *go;
    uint32_t n, add;
};

// A twin that waits for a word, then maps in to out.
static void twin(const void *p, unsigned blocks, unsigned threads) {
    const struct args *a = p;
    while (a->go != NULL && load(a->go) == 0)
        softhip_pause();
    for (uint32_t i = 0; i < a->n; i++)
        a->out[i] = a->in[i] + a->add + blocks * threads;
}

struct many {
    uint8_t small;
    uint64_t big;
    uint16_t half;
    uint64_t *out;
};

static void twin_of_many(const void *p, unsigned blocks, unsigned threads) {
    const struct many *m = p;
    (void)blocks;
    (void)threads;
    *m->out = m->small + m->big + m->half;
}

static void images(void) {
    begin("arch=gfx1151");
    void *m = NULL, *f = NULL;
    OK(softhip_kernel("map", twin, sizeof(struct args)));
    const void *elf = image_elf(0x4a, "map");
    OK(hipModuleLoadData(&m, elf));
    OK(hipModuleGetFunction(&f, m, "map"));
    OK(softhip_kernel("other", twin, sizeof(struct args)));
    GIVES(500, hipModuleGetFunction(&f, m, "other")); // not in the image
    OK(hipModuleUnload(m));
    GIVES(400, hipModuleUnload(m));
    OK(hipModuleLoadData(&m, image_bundle("gfx1151", elf)));
    OK(hipModuleUnload(m));
    OK(hipModuleLoadData(&m, image_bundle("gfx1151:xnack-", elf)));
    OK(hipModuleUnload(m));
    GIVES(209, hipModuleLoadData(&m, image_bundle("gfx1150", elf)));
    GIVES(209, hipModuleLoadData(&m, image_elf(0x4c, "map"))); // gfx942
    GIVES(200, hipModuleLoadData(&m, "neither one nor the other, but long enough to be read as if it were a header of sixty-four bytes"));
    GIVES(1, hipModuleLoadData(&m, NULL));
    OK(hipModuleLoadData(&m, image_elf(0x4a, "alone")));
    GIVES(500, hipModuleGetFunction(&f, m, "alone")); // no twin
    char text[1024];
    softhip_reports(text, sizeof text);
    CHECK(strstr(text, "kernel alone") != NULL);
    OK(hipModuleUnload(m));
    GIVES(-1, softhip_kernel("", twin, 8));
    GIVES(-1, softhip_kernel("map", twin, 5000));
}

static void launches(const char *settings) {
    begin(settings);
    void *m = NULL, *f = NULL, *s = new_stream();
    uint64_t *d = device_bytes(4096), *h = host_words(4096);
    OK(softhip_kernel("map", twin, sizeof(struct args)));
    OK(hipModuleLoadData(&m, image_elf(0x4a, "map")));
    OK(hipModuleGetFunction(&f, m, "map"));
    struct args a = {h, d, NULL, 100, 1}, b = {d, h, NULL, 100, 1}; // up, and down again
    for (uint64_t i = 0; i < 100; i++)
        h[i] = i;
    void *params[] = {&a}, *params_b[] = {&b};
    OK(hipModuleLaunchKernel(f, 2, 1, 1, 64, 1, 1, 0, s, params, NULL));
    memset(&a, 0, sizeof a); // copied by the launch
    size_t size = sizeof b;
    void *extra[] = {LAUNCH_BUFFER, &b, LAUNCH_BUFFER_SIZE, &size, LAUNCH_END};
    OK(hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, extra));
    OK(hipStreamSynchronize(s));
    bool right = true;
    for (uint64_t i = 0; i < 100; i++)
        right = right && h[i] == i + 2 + 128 + 32;
    CHECK(right);
    GIVES(9, hipModuleLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, s, params_b, NULL));
    GIVES(9, hipModuleLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, s, params_b, NULL));
    GIVES(1, hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params_b, extra));
    GIVES(1, hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
    GIVES(400, hipModuleLaunchKernel(m, 1, 1, 1, 32, 1, 1, 0, s, params_b, NULL));
    size = sizeof b - 1;
    GIVES(1, hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, extra));

    // Captured with the arguments of that moment, replayed.
    void *g = NULL, *x = NULL;
    OK(hipStreamBeginCapture(s, CAPTURE_RELAXED));
    struct args c = {h, h, NULL, 1, 1};
    void *params_c[] = {&c};
    OK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params_c, NULL));
    memset(&c, 0, sizeof c);
    OK(hipStreamEndCapture(s, &g));
    OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
    h[0] = 0;
    for (int i = 0; i < 5; i++)
        OK(hipGraphLaunch(x, s));
    OK(hipStreamSynchronize(s));
    CHECK(h[0] == 10);
    OK(hipGraphDestroy(g));
    OK(hipGraphExecDestroy(x));
    OK(hipModuleUnload(m));
    OK(hipStreamDestroy(s));
    OK(hipFree(d));
    OK(hipHostFree(h));
}

// A kernel that waits occupies its queue, and no core.
static void spinning(void) {
    begin("");
    void *m = NULL, *f = NULL, *s = new_stream();
    uint64_t *h = host_words(4096);
    OK(hipModuleLoadData(&m, image_elf(0x4a, "map")));
    OK(hipModuleGetFunction(&f, m, "map"));
    struct args a = {h, &h[1], &h[2], 1, 0};
    void *params[] = {&a};
    OK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    OK(hipStreamWriteValue64(s, &h[3], 1, 0));
    CHECK(ends_parked());
    char text[4096];
    softhip_parked(text, sizeof text);
    CHECK(strstr(text, "map") != NULL && strstr(text, "is a kernel that waits; 1 behind it") != NULL);
    CHECK(load(&h[3]) == 0);
    store(&h[2], 1);
    OK(hipStreamSynchronize(s));
    CHECK(load(&h[1]) == 1);
    store(&h[2], 0);
    OK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    CHECK(ends_parked());
    softhip_reset(); // leaves it by the pause
}

static void packing(void) {
    begin("");
    static const unsigned sizes[] = {1, 8, 2, 8};
    OK(softhip_kernel_args("many", twin_of_many, sizes, 4));
    void *m = NULL, *f = NULL, *s = new_stream();
    uint64_t *h = host_words(64);
    OK(hipModuleLoadData(&m, image_elf(0x4a, "many")));
    OK(hipModuleGetFunction(&f, m, "many"));
    uint8_t small = 1;
    uint64_t big = 1ull << 40;
    uint16_t half = 300;
    void *params[] = {&small, &big, &half, &h};
    OK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    OK(hipStreamSynchronize(s));
    CHECK(h[0] == (1ull << 40) + 301);
    OK(hipModuleUnload(m));
    OK(hipStreamDestroy(s));
    OK(hipHostFree(h));
}

void test_kernels(void) {
    images();
    launches("integrated=0");
    launches("integrated=1");
    spinning();
    packing();
}
