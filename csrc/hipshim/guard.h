// How a call meets the thread it runs on: goroutines move between threads, and an engine's own calls share them.
#ifndef HIPSHIM_GUARD_H
#define HIPSHIM_GUARD_H

#include "table.h"

// enter makes device current; leave makes current what was, whatever the call returned.
static inline int enter(const struct hipshim *t, int device, int *was) {
  int e = t->hipGetDevice(was);
  if (!e && *was != device) e = t->hipSetDevice(device);
  return e;
}

// told keeps an error of ours from an engine that asks hipGetLastError on this thread.
static inline int told(const struct hipshim *t, int e) {
  if (e && t->hipGetLastError) (void)t->hipGetLastError();
  return e;
}

static inline int leave(const struct hipshim *t, int device, int was, int e) {
  if (was != device) {
    int restored = t->hipSetDevice(was);
    if (!e) e = restored;
  }
  return told(t, e);
}

#define ON_DEVICE(call)                 \
  do {                                  \
    int was;                            \
    int e = enter(t, device, &was);     \
    if (e) return told(t, e);           \
    return leave(t, device, was, call); \
  } while (0)

// An engine's capture in Global mode is invalidated by an allocation, a free or a query on any thread that is not relaxed.
static inline int relax(const struct hipshim *t) {
  hipStreamCaptureMode mode = 2;
  if (!t->hipThreadExchangeStreamCaptureMode || t->hipThreadExchangeStreamCaptureMode(&mode)) return -1;
  return (int)mode;
}

static inline int unrelax(const struct hipshim *t, int was, int e) {
  hipStreamCaptureMode mode = was;
  if (was >= 0) (void)t->hipThreadExchangeStreamCaptureMode(&mode);
  return e;
}

#define RELAXED(call)              \
  do {                             \
    int mode = relax(t);           \
    return unrelax(t, mode, call); \
  } while (0)

#define RELAXED_ON_DEVICE(call)                           \
  do {                                                    \
    int was;                                              \
    int e = enter(t, device, &was);                       \
    if (e) return told(t, e);                             \
    int mode = relax(t);                                  \
    return leave(t, device, was, unrelax(t, mode, call)); \
  } while (0)

#endif
