//go:build cgo && linux

/* The kernels' host build, and the pause that a software device replaces by its own. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define HF_HOST_BUILD
#include "mailbox.hip"
#include <sched.h>

__attribute__((weak)) void softhip_pause(void) { sched_yield(); }
