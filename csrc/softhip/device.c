//go:build cgo && linux

// Devices: which there are, what they say of themselves, and whether they still work.
#include <stdio.h>
#include <string.h>

#include "world.h"

int device_error(int device) { return atomic_load(&world.devices[device].sticky); }

// device_fail makes every further call on a device give code. The first failure stays.
void device_fail(int device, int code) {
    int none = hipSuccess;
    atomic_compare_exchange_strong(&world.devices[device].sticky, &none, code);
    changed(NULL, 0);
}

static bool has_device(int device) { return device >= 0 && device < world.set.visibles; }

API(hipInit)(unsigned flags) {
    CALL(hipInit);
    return call_leave(flags == 0 ? hipSuccess : hipErrorInvalidValue);
}

API(hipGetDeviceCount)(int *count) {
    if (count == NULL)
        return hipErrorInvalidValue;
    *count = 0;
    CALL(hipGetDeviceCount);
    *count = world.set.visibles;
    return hipSuccess;
}

API(hipGetDevice)(int *device) {
    CALL(hipGetDevice);
    if (device == NULL)
        return call_leave(hipErrorInvalidValue);
    *device = current_device();
    return hipSuccess;
}

API(hipSetDevice)(int device) {
    CALL(hipSetDevice);
    if (!has_device(device))
        return call_leave(hipErrorInvalidDevice);
    set_current_device(device);
    return hipSuccess;
}

API(hipDeviceGet)(int *device, int ordinal) {
    CALL(hipDeviceGet);
    if (device == NULL)
        return call_leave(hipErrorInvalidValue);
    if (!has_device(ordinal))
        return call_leave(hipErrorInvalidDevice);
    *device = ordinal;
    return hipSuccess;
}

static int bus(int device) { return 0xc5 + world.set.visible[device]; }

// arch_part reads the version in gfx1151 or gfx90a: major 11 or 9.
static int arch_part(bool major) {
    const char *digits = world.set.arch + 3;
    size_t n = strcspn(digits, ":");
    if (strncmp(world.set.arch, "gfx", 3) != 0 || n < 3)
        return 0;
    int v = 0;
    if (!major)
        return digits[n - 2] - '0';
    for (size_t i = 0; i < n - 2; i++)
        v = v * 10 + digits[i] - '0';
    return v;
}

API(hipDeviceGetAttribute)(int *value, int attribute, int device) {
    CALL(hipDeviceGetAttribute);
    if (value == NULL)
        return call_leave(hipErrorInvalidValue);
    if (!has_device(device))
        return call_leave(hipErrorInvalidDevice);
    switch (attribute) {
    case 2: *value = world.set.sdma_rings; break;            // AsyncEngineCount
    case 3:                                                   // CanMapHostMemory
    case 4:                                                   // CanUseHostPointerForRegisteredMem
    case 8:                                                   // ConcurrentKernels
    case 78:                                                  // StreamPrioritiesSupported
    case 85: *value = 1; break;                               // UnifiedAddressing
    case 15:                                                  // HostNativeAtomicSupported
    case 16: *value = world.set.integrated; break;            // Integrated
    case 23: *value = arch_part(true); break;                 // ComputeCapabilityMajor
    case 24: *value = 0; break;                               // ManagedMemory
    case 61: *value = arch_part(false); break;                // ComputeCapabilityMinor
    case 63: *value = 40; break;                              // MultiprocessorCount
    case 65: *value = 0; break;                               // PageableMemoryAccess
    case 67: *value = bus(device); break;                     // PciBusId
    case 68: *value = 0; break;                               // PciDeviceId
    case 69: *value = 0; break;                               // PciDomainID
    case 84: *value = world.set.memory_mb >= 2048 ? 0x7fffffff : (int)(world.set.memory_mb << 20); break; // TotalGlobalMem
    case 87: *value = arch_part(true) >= 10 ? 32 : 64; break; // WarpSize
    case 88: *value = 0; break;                               // MemoryPoolsSupported
    case 10000:                                               // ClockInstructionRate, kHz
    case 10017: *value = 100000; break;                       // WallClockRate, kHz
    case 10011: *value = !world.set.integrated; break;        // IsLargeBar
    case 10013:                                               // CanUseStreamWaitValue
        if (world.set.stream_wait < 0)
            return call_leave(hipErrorInvalidValue);
        *value = world.set.stream_wait;
        break;
    case 10012:                                               // AsicRevision
    case 10014: *value = 0; break;                            // ImageSupport
    case 10016: *value = 1; break;                            // FineGrainSupport
    default: return call_leave(hipErrorInvalidValue);
    }
    return hipSuccess;
}

API(hipDeviceGetPCIBusId)(char *text, int n, int device) {
    CALL(hipDeviceGetPCIBusId);
    if (!has_device(device))
        return call_leave(hipErrorInvalidDevice);
    if (text == NULL || n < 13)
        return call_leave(hipErrorInvalidValue);
    snprintf(text, (size_t)n, "%04x:%02x:%02x.%01x", 0u, (unsigned)bus(device), 0u, 0u);
    return hipSuccess;
}

API(hipDeviceGetByPCIBusId)(int *device, const char *text) {
    CALL(hipDeviceGetByPCIBusId);
    unsigned domain, at, slot, function;
    if (device == NULL || text == NULL || sscanf(text, "%x:%x:%x.%x", &domain, &at, &slot, &function) != 4)
        return call_leave(hipErrorInvalidValue);
    for (int i = 0; i < world.set.visibles; i++)
        if (domain == 0 && at == (unsigned)bus(i) && slot == 0 && function == 0) {
            *device = i;
            return hipSuccess;
        }
    return call_leave(hipErrorInvalidValue);
}

API(hipDeviceGetName)(char *text, int n, int device) {
    CALL(hipDeviceGetName);
    if (!has_device(device))
        return call_leave(hipErrorInvalidDevice);
    if (text == NULL || n <= 0)
        return call_leave(hipErrorInvalidValue);
    snprintf(text, (size_t)n, "%s", world.set.name);
    return hipSuccess;
}

API(hipDeviceGetUuid)(hipUUID *uuid, int device) {
    CALL(hipDeviceGetUuid);
    if (!has_device(device))
        return call_leave(hipErrorInvalidDevice);
    if (uuid == NULL)
        return call_leave(hipErrorInvalidValue);
    char text[17];
    snprintf(text, sizeof text, "softhip%09x", (unsigned)world.set.visible[device]);
    memcpy(uuid->bytes, text, 16);
    return hipSuccess;
}

API(hipDeviceGetStreamPriorityRange)(int *least, int *greatest) {
    CALL(hipDeviceGetStreamPriorityRange);
    if (least != NULL)
        *least = 1;
    if (greatest != NULL)
        *greatest = -1;
    return hipSuccess;
}

API(hipMemGetInfo)(size_t *unused, size_t *total) {
    CALL(hipMemGetInfo);
    if (unused == NULL || total == NULL)
        return call_leave(hipErrorInvalidValue);
    pthread_mutex_lock(&world_lock);
    *total = (size_t)world.set.memory_mb << 20;
    *unused = *total - world.devices[current_device()].used;
    pthread_mutex_unlock(&world_lock);
    return hipSuccess;
}

static int version(int *out) {
    if (out == NULL)
        return hipErrorInvalidValue;
    *out = world.set.major * 10000000 + world.set.minor * 100000 + world.set.patch;
    return hipSuccess;
}

// The versions answer without a GPU, and so never begin as other calls do.
API(hipRuntimeGetVersion)(int *out) {
    world_begin();
    int code = fault_call(CALL_hipRuntimeGetVersion);
    return code != hipSuccess ? code : version(out);
}

API(hipDriverGetVersion)(int *out) {
    world_begin();
    int code = fault_call(CALL_hipDriverGetVersion);
    return code != hipSuccess ? code : version(out);
}

static void put(char *properties, size_t at, int value) { memcpy(properties + at, &value, sizeof value); }

// Where hipDeviceProp_t holds what callers read; it changed at 6.0.
struct layout {
    size_t bytes, memory, integrated, can_map, bus, device, domain, arch;
};
static const struct layout r0000 = {792, 256, 652, 388, 368, 372, 364, 396};
static const struct layout r0600 = {1472, 288, 396, 400, 584, 588, 592, 1160};

static int properties(void *out, int device, const struct layout *l) {
    if (out == NULL)
        return call_leave(hipErrorInvalidValue);
    if (!has_device(device))
        return call_leave(hipErrorInvalidDevice);
    char *p = out;
    memset(p, 0, l->bytes);
    snprintf(p, 256, "%s", world.set.name);
    size_t memory = (size_t)world.set.memory_mb << 20;
    memcpy(p + l->memory, &memory, sizeof memory);
    put(p, l->integrated, world.set.integrated);
    put(p, l->can_map, 1);
    put(p, l->bus, bus(device));
    snprintf(p + l->arch, 256, "%s", world.set.arch);
    return hipSuccess;
}

API(hipGetDeviceProperties)(void *out, int device) {
    CALL(hipGetDeviceProperties);
    return properties(out, device, &r0000);
}

API(hipGetDevicePropertiesR0000)(void *out, int device) {
    CALL(hipGetDevicePropertiesR0000);
    return properties(out, device, &r0000);
}

API(hipGetDevicePropertiesR0600)(void *out, int device) {
    CALL(hipGetDevicePropertiesR0600);
    return properties(out, device, &r0600);
}
