//go:build cgo && linux

#include "soft.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "softhip.h"

// One world a process, and one owner of it.
static atomic_flag claimed = ATOMIC_FLAG_INIT;

static int told(int code, char *why, size_t n) {
  if (code != 0) snprintf(why, n, "%s", softhip_error());
  return code;
}

int soft_open(const char *settings, char *why, size_t n) {
  if (atomic_flag_test_and_set(&claimed)) {
    snprintf(why, n, "the process has a software device already; close that one first");
    return -1;
  }
  softhip_reset();
  int code = told(softhip_configure(settings), why, n);
  if (code != 0) atomic_flag_clear(&claimed);
  return code;
}

void soft_close(void) {
  softhip_reset();
  atomic_flag_clear(&claimed);
}

void *soft_find(void *context, const char *name) { return softhip_find(context, name); }

int soft_do(const char *what, int queue, unsigned n, char *why, size_t room) {
  if (strcmp(what, "hold") == 0) return told(softhip_hold(queue), why, room);
  if (strcmp(what, "release") == 0) return told(softhip_release(queue), why, room);
  if (strcmp(what, "step") == 0) return told(softhip_step(queue, n), why, room);
  if (strcmp(what, "settle") == 0) return told(softhip_settle(n), why, room);
  softhip_land();
  return 0;
}

int soft_fault(const char *spec, char *why, size_t n) { return told(softhip_fault(spec), why, n); }

// A library of twins stays loaded: a kernel may be launched from it at any time. Its twins' sizes are in an array of
// unsigned named SYMBOL_args, ended by 0, unless the caller tells them; its hook for waiting loops is set to ours.
int soft_kernel(const char *name, const char *so, const char *symbol, const unsigned *sizes, unsigned count, char *why, size_t n) {
  void *library = dlopen(so, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    snprintf(why, n, "%s", dlerror());
    return -1;
  }
  void *twin = dlsym(library, symbol);
  if (twin == NULL) {
    snprintf(why, n, "%s has no %s", so, symbol);
    return -1;
  }
  void (**pause)(void) = dlsym(library, "softhip_pause_hook");
  if (pause != NULL) *pause = softhip_pause;
  char tells[256];
  snprintf(tells, sizeof tells, "%s_args", symbol);
  const unsigned *args = dlsym(library, tells);
  if (count == 0 && args != NULL) {
    sizes = args;
    while (sizes[count] != 0) count++;
  }
  softhip_twin *call;
  memcpy(&call, &twin, sizeof call);
  return told(softhip_kernel_args(name, call, sizes, count), why, n);
}

int soft_queue(uintptr_t stream) { return softhip_queue((void *)stream); }
