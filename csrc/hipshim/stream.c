//go:build cgo && linux

#include "guard.h"

int hipshim_stream_create(const struct hipshim *t, int device, unsigned flags, uintptr_t *stream) {
  RELAXED_ON_DEVICE(t->hipStreamCreateWithFlags((hipStream_t *)stream, flags));
}

int hipshim_stream_create_priority(const struct hipshim *t, int device, unsigned flags, int priority, uintptr_t *stream) {
  RELAXED_ON_DEVICE(t->hipStreamCreateWithPriority((hipStream_t *)stream, flags, priority));
}

int hipshim_stream_create_mask(const struct hipshim *t, int device, uint32_t words, const uint32_t *mask, uintptr_t *stream) {
  if (!t->hipExtStreamCreateWithCUMask) return 801;  // hipErrorNotSupported
  RELAXED_ON_DEVICE(t->hipExtStreamCreateWithCUMask((hipStream_t *)stream, words, mask));
}

int hipshim_stream_destroy(const struct hipshim *t, int device, uintptr_t stream) {
  RELAXED_ON_DEVICE(t->hipStreamDestroy((hipStream_t)stream));
}

int hipshim_stream_query(const struct hipshim *t, int device, uintptr_t stream) {
  RELAXED_ON_DEVICE(t->hipStreamQuery((hipStream_t)stream));
}

int hipshim_stream_capturing(uintptr_t table, int device, uintptr_t stream, int *status) {
  const struct hipshim *t = (const struct hipshim *)table;
  hipStreamCaptureStatus s = 0;
  int was, e = enter(t, device, &was);
  if (e) return told(t, e);
  e = leave(t, device, was, t->hipStreamIsCapturing((hipStream_t)stream, &s));
  *status = (int)s;
  return e;
}

int hipshim_stream_wait_event(const struct hipshim *t, int device, uintptr_t stream, uintptr_t event) {
  ON_DEVICE(t->hipStreamWaitEvent((hipStream_t)stream, (hipEvent_t)event, 0));
}

int hipshim_copy(uintptr_t table, int device, uintptr_t stream, uintptr_t dst, uintptr_t src, size_t bytes, int kind) {
  const struct hipshim *t = (const struct hipshim *)table;
  RELAXED_ON_DEVICE(t->hipMemcpyAsync((void *)dst, (const void *)src, bytes, kind, (hipStream_t)stream));
}

int hipshim_memset(const struct hipshim *t, int device, uintptr_t stream, uintptr_t dst, int value, size_t bytes) {
  ON_DEVICE(t->hipMemsetAsync((void *)dst, value, bytes, (hipStream_t)stream));
}

int hipshim_wait64(uintptr_t table, int device, uintptr_t stream, uintptr_t p, uint64_t value, unsigned flags, uint64_t mask) {
  const struct hipshim *t = (const struct hipshim *)table;
  ON_DEVICE(t->hipStreamWaitValue64((hipStream_t)stream, (void *)p, value, flags, mask));
}

int hipshim_wait32(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint32_t value, unsigned flags, uint32_t mask) {
  ON_DEVICE(t->hipStreamWaitValue32((hipStream_t)stream, (void *)p, value, flags, mask));
}

int hipshim_write64(uintptr_t table, int device, uintptr_t stream, uintptr_t p, uint64_t value) {
  const struct hipshim *t = (const struct hipshim *)table;
  ON_DEVICE(t->hipStreamWriteValue64((hipStream_t)stream, (void *)p, value, 0));
}

int hipshim_write32(const struct hipshim *t, int device, uintptr_t stream, uintptr_t p, uint32_t value) {
  ON_DEVICE(t->hipStreamWriteValue32((hipStream_t)stream, (void *)p, value, 0));
}

// write_wait gives the error, and how many of the two it queued.
static int write_wait(const struct hipshim *t, hipStream_t stream, uintptr_t ready, uint64_t r, uintptr_t done, uint64_t d, int ask, int *queued) {
  int e;
  if (ask) {
    hipStreamCaptureStatus status = 0;
    e = t->hipStreamIsCapturing(stream, &status);
    *queued = e ? HIPSHIM_UNANSWERED : HIPSHIM_CAPTURES;
    if (e || status) return e;
  }
  *queued = 0;
  e = t->hipStreamWriteValue64(stream, (void *)ready, r, 0);
  if (e) return e;
  *queued = 1;
  e = t->hipStreamWaitValue64(stream, (void *)done, d, 0, UINT64_MAX);
  if (!e) *queued = 2;
  return e;
}

int64_t hipshim_write_wait(uintptr_t table, int device, uintptr_t stream, uintptr_t ready, uint64_t r, uintptr_t done, uint64_t d, int ask) {
  const struct hipshim *t = (const struct hipshim *)table;
  int was, queued = 0;
  int e = enter(t, device, &was);
  e = e ? told(t, e) : leave(t, device, was, write_wait(t, (hipStream_t)stream, ready, r, done, d, ask, &queued));
  return (int64_t)queued * ((int64_t)1 << 32) + (uint32_t)e;
}

int hipshim_event_create(const struct hipshim *t, int device, unsigned flags, uintptr_t *event) {
  RELAXED_ON_DEVICE(t->hipEventCreateWithFlags((hipEvent_t *)event, flags));
}

int hipshim_event_destroy(const struct hipshim *t, int device, uintptr_t event) {
  RELAXED_ON_DEVICE(t->hipEventDestroy((hipEvent_t)event));
}

int hipshim_event_record(uintptr_t table, int device, uintptr_t event, uintptr_t stream) {
  const struct hipshim *t = (const struct hipshim *)table;
  RELAXED_ON_DEVICE(t->hipEventRecord((hipEvent_t)event, (hipStream_t)stream));
}

int hipshim_event_query(uintptr_t table, int device, uintptr_t event) {
  const struct hipshim *t = (const struct hipshim *)table;
  RELAXED_ON_DEVICE(t->hipEventQuery((hipEvent_t)event));
}

int hipshim_event_elapsed(const struct hipshim *t, int device, uintptr_t start, uintptr_t stop, float *milliseconds) {
  ON_DEVICE(t->hipEventElapsedTime(milliseconds, (hipEvent_t)start, (hipEvent_t)stop));
}
