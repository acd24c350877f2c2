//go:build cgo && linux

// Waiting: on futexes for what this library changes, by bounded polling for what a host store changes, which signals nobody.
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

enum { SPINS = 10, YIELDS = 60, FIRST_SLEEP_NS = 5000, LAST_SLEEP_NS = 50000 };
enum { PATIENT = 2000, PATIENT_SLEEP_NS = 250000 }; // who has slept that often may be late

void futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns) {
    struct timespec t = {.tv_sec = (time_t)(timeout_ns / 1000000000u), .tv_nsec = (long)(timeout_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns == 0 ? NULL : &t, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// pace is one turn of a wait: it spins at first, then gives the core away, then sleeps, longer each time. A change of word
// from seen ends the sleep. Many sleepers sleep longer, so that together they leave the cores alone.
void pace(struct pace *p, _Atomic uint32_t *word, uint32_t seen) {
    if (p->turns < SPINS) {
        p->turns++;
        relax();
        return;
    }
    if (p->turns < SPINS + YIELDS) {
        p->turns++;
        sched_yield();
        return;
    }
    unsigned most = p->turns < PATIENT ? LAST_SLEEP_NS : PATIENT_SLEEP_NS;
    p->turns++;
    p->sleep_ns = p->sleep_ns == 0 ? FIRST_SLEEP_NS : p->sleep_ns * 2 > most ? most : p->sleep_ns * 2;
    int crowd = atomic_fetch_add(&world.sleepers, 1) / 4;
    if (p->dozing != NULL)
        atomic_store(p->dozing, 1);
    futex_wait(word, seen, (uint64_t)p->sleep_ns * (unsigned)(crowd < 1 ? 1 : crowd));
    if (p->dozing != NULL)
        atomic_store(p->dozing, 0);
    atomic_fetch_sub(&world.sleepers, 1);
}

// changed tells the waits that look at [at, at+bytes) that a queue has changed it; all of them with at NULL.
void changed(const char *at, size_t bytes) {
    atomic_fetch_add(&world.changes, 1);
    int count = atomic_load(&world.engine_count);
    for (int i = 0; i < count; i++) {
        struct engine *e = world.engines[i];
        uintptr_t looks = atomic_load(&e->looks_at);
        if (looks == 0 || (at != NULL && looks != ANYWHERE && looks - (uintptr_t)at >= bytes))
            continue;
        atomic_fetch_add(&e->poke, 1);
        if (atomic_load(&e->dozing) != 0)
            futex_wake(&e->poke);
    }
}

uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t thread_number(void) {
    static _Thread_local uint64_t number;
    if (number == 0)
        number = (uint64_t)syscall(SYS_gettid);
    return number;
}
