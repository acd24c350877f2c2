// softhip's tests: plain, and under each sanitizer, by `make test-c`.
#include <signal.h>
#include <unistd.h>

#include "check.h"

int failures;

static const struct { const char *name; void (*run)(void); } tests[] = {
    {"devices", test_devices}, {"memory", test_memory},       {"queues", test_queues}, {"waits", test_waits},
    {"copies", test_copies},   {"coherence", test_coherence}, {"events", test_events}, {"capture", test_capture},
    {"kernels", test_kernels}, {"faults", test_faults},       {"control", test_control},
};

int main(int argc, char **argv) {
    size_t ran = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc > 1 && strcmp(argv[1], tests[i].name) != 0)
            continue;
        alarm(240); // a test that hangs is told by name
        fprintf(stderr, "softhip: %s\n", tests[i].name);
        tests[i].run();
        softhip_reset();
        ran++;
    }
    fprintf(stderr, "softhip: %zu groups of tests, %d checks failed\n", ran, failures);
    return failures != 0 || ran == 0;
}
