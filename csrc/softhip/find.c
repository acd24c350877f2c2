//go:build cgo && linux

// Names to functions, for a table that is filled without the dynamic linker.
#include <string.h>

#include "world.h"

#define DECLARE(name, since) extern int NAMED(name)();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
SOFTHIP_CALLS(DECLARE)
#pragma GCC diagnostic pop

#define ROW(name, since) {#name, since, (void *)NAMED(name)},
#define OWN(name) {#name, 0, (void *)name},
static const struct {
    const char *name;
    int since;
    void *at;
} names[] = {
    SOFTHIP_CALLS(ROW)
    OWN(softhip_configure) OWN(softhip_reset) OWN(softhip_error) OWN(softhip_find) OWN(softhip_kernel)
    OWN(softhip_kernel_args) OWN(softhip_pause) OWN(softhip_view) OWN(softhip_queue) OWN(softhip_ring) OWN(softhip_hold)
    OWN(softhip_step) OWN(softhip_release) OWN(softhip_settle) OWN(softhip_fault) OWN(softhip_land) OWN(softhip_parked)
    OWN(softhip_leaks) OWN(softhip_reports) OWN(softhip_trace)
};

SOFTHIP_API void *softhip_find(void *ctx, const char *name) {
    (void)ctx;
    world_begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0)
            return name_missing(name, names[i].since) ? NULL : names[i].at;
    return NULL;
}
