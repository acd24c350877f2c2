// A HIP runtime that only loads: -DVERSION, and -DhipX=other to lack hipX.
#include "table.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define hipRuntimeGetVersion unused
#define NOTHING(name, args) \
  hipError_t name args { return 0; }
HIPSHIM_REQUIRED(NOTHING)
#undef hipRuntimeGetVersion

hipError_t hipRuntimeGetVersion(int *version) {
  *version = VERSION;
  return CODE;
}
