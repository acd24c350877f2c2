//go:build cgo && linux

/* In place of the pause that mailbox has by default. */
#include <sched.h>

void softhip_pause(void);
unsigned long turns_count(void);

static unsigned long turns;

void softhip_pause(void) {
    __atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED);
    sched_yield();
}

unsigned long turns_count(void) { return __atomic_load_n(&turns, __ATOMIC_RELAXED); }
