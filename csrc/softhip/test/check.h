// The tests' side: HIP's prototypes as a caller sees them, and checks that tell where they failed.
#ifndef SOFTHIP_CHECK_H
#define SOFTHIP_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hip.h"
#include "../softhip.h"

int hipInit(unsigned);
int hipGetDeviceCount(int *);
int hipGetDevice(int *);
int hipSetDevice(int);
int hipDeviceGetAttribute(int *, int, int);
int hipDeviceGetPCIBusId(char *, int, int);
int hipDeviceGetByPCIBusId(int *, const char *);
int hipDeviceSynchronize(void);
int hipGetDevicePropertiesR0600(void *, int);
int hipGetDeviceProperties(void *, int);
int hipRuntimeGetVersion(int *);
int hipGetLastError(void);
int hipPeekAtLastError(void);
int hipMalloc(void **, size_t);
int hipExtMallocWithFlags(void **, size_t, unsigned);
int hipFree(void *);
int hipMemGetInfo(size_t *, size_t *);
int hipHostMalloc(void **, size_t, unsigned);
int hipHostFree(void *);
int hipHostGetDevicePointer(void **, void *, unsigned);
int hipHostRegister(void *, size_t, unsigned);
int hipHostUnregister(void *);
int hipPointerGetAttributes(hipPointerAttribute *, const void *);
int hipMemGetAddressRange(void **, size_t *, void *);
int hipMemGetHandleForAddressRange(void *, void *, size_t, int, unsigned long long);
int hipMemcpy(void *, const void *, size_t, int);
int hipMemcpyAsync(void *, const void *, size_t, int, void *);
int hipMemset(void *, int, size_t);
int hipMemsetAsync(void *, int, size_t, void *);
int hipStreamCreateWithFlags(void **, unsigned);
int hipStreamCreateWithPriority(void **, unsigned, int);
int hipExtStreamCreateWithCUMask(void **, uint32_t, const uint32_t *);
int hipStreamDestroy(void *);
int hipStreamQuery(void *);
int hipStreamSynchronize(void *);
int hipStreamWaitEvent(void *, void *, unsigned);
int hipStreamWaitValue32(void *, void *, uint32_t, unsigned, uint32_t);
int hipStreamWaitValue64(void *, void *, uint64_t, unsigned, uint64_t);
int hipStreamWriteValue32(void *, void *, uint32_t, unsigned);
int hipStreamWriteValue64(void *, void *, uint64_t, unsigned);
int hipStreamBatchMemOp(void *, unsigned, hipBatchOp *, unsigned);
int hipStreamBeginCapture(void *, int);
int hipStreamEndCapture(void *, void **);
int hipStreamIsCapturing(void *, int *);
int hipThreadExchangeStreamCaptureMode(int *);
int hipGraphInstantiate(void **, void *, void **, char *, size_t);
int hipGraphLaunch(void *, void *);
int hipGraphExecDestroy(void *);
int hipGraphDestroy(void *);
int hipEventCreateWithFlags(void **, unsigned);
int hipEventRecord(void *, void *);
int hipEventQuery(void *);
int hipEventSynchronize(void *);
int hipEventElapsedTime(float *, void *, void *);
int hipEventDestroy(void *);
int hipModuleLoadData(void **, const void *);
int hipModuleUnload(void *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int hipLaunchHostFunc(void *, void (*)(void *), void *);

extern int failures;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            failures++; \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
        } \
    } while (0)

#define GIVES(code, call) \
    do { \
        int got_ = (call), want_ = (code); \
        if (got_ != want_) { \
            failures++; \
            fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #call, got_, want_); \
        } \
    } while (0)

#define OK(call) GIVES(0, call)

// begin starts a test's world.
static inline void begin(const char *settings) {
    softhip_reset();
    if (softhip_configure(settings) != 0) {
        failures++;
        fprintf(stderr, "softhip_configure(%s): %s\n", settings, softhip_error());
    }
}

static inline uint64_t load(void *word) { return __atomic_load_n((uint64_t *)word, __ATOMIC_ACQUIRE); }
static inline void store(void *word, uint64_t v) { __atomic_store_n((uint64_t *)word, v, __ATOMIC_RELEASE); }

static inline uint64_t *host_words(size_t bytes) {
    void *p = NULL;
    OK(hipHostMalloc(&p, bytes, HOST_MAPPED | HOST_COHERENT));
    return p;
}

static inline void *device_bytes(size_t bytes) {
    void *p = NULL;
    OK(hipMalloc(&p, bytes));
    return p;
}

static inline void *new_stream(void) {
    void *s = NULL;
    OK(hipStreamCreateWithFlags(&s, STREAM_NON_BLOCKING));
    return s;
}

static inline void *masked_stream(void) {
    void *s = NULL;
    uint32_t all = 0xffffffffu;
    OK(hipExtStreamCreateWithCUMask(&s, 1, &all));
    return s;
}

static inline bool ends_parked(void) {
    char text[65536];
    OK(softhip_settle(20000));
    softhip_parked(text, sizeof text);
    return text[0] != 0;
}

// A synthetic code object for gfx1151 with one kernel, or a bundle that holds it: test/image.c.
const void *image_elf(unsigned mach, const char *kernel);
const void *image_bundle(const char *arch, const void *elf);

void test_devices(void);
void test_memory(void);
void test_queues(void);
void test_waits(void);
void test_copies(void);
void test_coherence(void);
void test_events(void);
void test_capture(void);
void test_kernels(void);
void test_faults(void);
void test_control(void);

#endif
