//go:build cgo && linux

// Codes, contexts and attributes: where CUDA counts otherwise than HIP.
#include "cuda.h"

#include <ctype.h>
#include <pthread.h>

// HIP took CUDA's numbers over; these few it gave no name.
hipError_t cuda_code(CUresult result) {
  switch (result) {
    case 34: return 303;   // STUB_LIBRARY: SharedObjectInitFailed
    case 222:              // UNSUPPORTED_PTX_VERSION
    case 803:              // SYSTEM_DRIVER_MISMATCH
    case 804: return 35;   // COMPAT_NOT_SUPPORTED_ON_DEVICE: InsufficientDriver
    case 802: return 3;    // SYSTEM_NOT_READY: NotInitialized
    case 909: return 702;  // TIMEOUT: LaunchTimeOut
    default: return result;
  }
}

#define GIVE(call) return cuda_code(cuda_driver.call)

hipError_t cuda_hipInit(unsigned flags) { GIVE(cuInit(flags)); }

// As HIP writes versions: CUDA 12.4 is 12 * 10^7 + 4 * 10^5.
hipError_t cuda_hipRuntimeGetVersion(int *version) {
  int v = 0;
  CUresult r = cuda_driver.cuDriverGetVersion(&v);
  *version = v / 1000 * 10000000 + v % 1000 / 10 * 100000;
  return cuda_code(r);
}

hipError_t cuda_hipGetDeviceCount(int *count) { GIVE(cuDeviceGetCount(count)); }

// A thread's current device is its current context here. An engine may have none, or one of its own: the table's functions
// restore what was, by these instead of an ordinal.
enum { NO_CONTEXT = -1, FOREIGN_CONTEXT = -2, MAX_DEVICES = 64, INVALID_VALUE = 1, INVALID_DEVICE = 101 };

static CUcontext primary[MAX_DEVICES];  // retained for as long as the process lasts
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local CUcontext foreign;

static CUcontext peek(int device) { return __atomic_load_n(&primary[device], __ATOMIC_ACQUIRE); }

hipError_t cuda_hipGetDevice(int *device) {
  CUcontext now = NULL;
  CUresult r = cuda_driver.cuCtxGetCurrent(&now);
  if (r) return cuda_code(r);
  if (!now) {
    *device = NO_CONTEXT;
    return 0;
  }
  for (int i = 0; i < MAX_DEVICES; i++) {
    if (peek(i) == now) {
      *device = i;
      return 0;
    }
  }
  foreign = now;
  *device = FOREIGN_CONTEXT;
  return 0;
}

static CUresult retain(int device) {
  CUdevice d = 0;
  CUcontext context = NULL;
  CUresult r = cuda_driver.cuDeviceGet(&d, device);
  if (!r) r = cuda_driver.cuDevicePrimaryCtxRetain(&context, d);
  if (!r) __atomic_store_n(&primary[device], context, __ATOMIC_RELEASE);
  return r;
}

hipError_t cuda_hipSetDevice(int device) {
  if (device == NO_CONTEXT) GIVE(cuCtxSetCurrent(NULL));
  if (device == FOREIGN_CONTEXT) GIVE(cuCtxSetCurrent(foreign));
  if (device < 0 || device >= MAX_DEVICES) return INVALID_DEVICE;
  if (!peek(device)) {
    pthread_mutex_lock(&primary_lock);
    CUresult r = peek(device) ? 0 : retain(device);
    pthread_mutex_unlock(&primary_lock);
    if (r) return cuda_code(r);
  }
  GIVE(cuCtxSetCurrent(peek(device)));
}

#define ON(ordinal, call)                                            \
  do {                                                               \
    CUdevice d = 0;                                                  \
    CUresult found = cuda_driver.cuDeviceGet(&d, ordinal);           \
    return cuda_code(found ? found : cuda_driver.call);              \
  } while (0)

hipError_t cuda_hipDeviceGetName(char *name, int length, hipDevice_t device) { ON(device, cuDeviceGetName(name, length, d)); }

hipError_t cuda_hipDeviceGetPCIBusId(char *id, int length, int device) {
  CUdevice d = 0;
  CUresult r = cuda_driver.cuDeviceGet(&d, device);
  if (!r) r = cuda_driver.cuDeviceGetPCIBusId(id, length, d);
  for (int i = 0; !r && i < length && id[i]; i++) id[i] = (char)tolower((unsigned char)id[i]);
  return cuda_code(r);
}

// What HIP numbers so is CUDA's second.
static const struct {
  int hip, cuda;
} attributes[] = {
    {2, 40},     // AsyncEngineCount
    {3, 19},     // CanMapHostMemory
    {4, 91},     // CanUseHostPointerForRegisteredMem
    {8, 31},     // ConcurrentKernels
    {15, 86},    // HostNativeAtomicSupported
    {16, 18},    // Integrated
    {23, 75},    // ComputeCapabilityMajor
    {24, 83},    // ManagedMemory
    {61, 76},    // ComputeCapabilityMinor
    {63, 16},    // MultiprocessorCount
    {65, 88},    // PageableMemoryAccess
    {67, 33},    // PciBusId
    {68, 34},    // PciDeviceId
    {69, 50},    // PciDomainID
    {78, 78},    // StreamPrioritiesSupported
    {85, 41},    // UnifiedAddressing
    {87, 10},    // WarpSize
    {88, 115},   // MemoryPoolsSupported
    {90, 99},    // HostRegisterSupported
    {93, 124},   // DmaBufSupported
    {10013, 122} // CanUseStreamWaitValue: CAN_USE_64_BIT_STREAM_MEM_OPS
};

enum { WALL_CLOCK_RATE = 10017, GLOBALTIMER_KHZ = 1000000 };

hipError_t cuda_hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  if ((int)attribute == WALL_CLOCK_RATE) {
    *value = GLOBALTIMER_KHZ;  // kernels read %globaltimer, in nanoseconds
    return 0;
  }
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i].hip == (int)attribute) ON(device, cuDeviceGetAttribute(value, attributes[i].cuda, d));
  return INVALID_VALUE;
}
