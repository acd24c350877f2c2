//go:build cgo && linux

package bare

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Wno-unused-parameter -I${SRCDIR}/../../../../csrc/hipshim
// #cgo noescape bare_call
// #cgo nocallback bare_call
// #include <stdlib.h>
// #include <string.h>
// #include "table.h"
//
// #define NOTHING(name, args) static hipError_t nothing_##name args { return 0; }
// HIPSHIM_REQUIRED(NOTHING)
// HIPSHIM_OPTIONAL(NOTHING)
// static hipError_t version(int *v) { *v = 71526333; return 0; }
// static hipError_t current(int *device) { *device = 0; return 0; }
// static hipError_t load(hipModule_t *m, const void *image) { *m = (void *)image; return 0; } // the handle says which image
//
// // The name that context holds is missing.
// static void *bare_find(void *context, const char *name) {
//   if (context && !strcmp(context, name)) return 0;
//   if (!strcmp(name, "hipRuntimeGetVersion")) return version;
//   if (!strcmp(name, "hipGetDevice")) return current;
//   if (!strcmp(name, "hipModuleLoadData")) return load;
// #define FOUND(which, args) if (!strcmp(name, #which)) return nothing_##which;
//   HIPSHIM_REQUIRED(FOUND)
//   HIPSHIM_OPTIONAL(FOUND)
//   return 0;
// }
// static void *bare_finder(void) { return bare_find; }
//
// #define NAME(name, args) #name " "
// static const char *bare_required(void) { return HIPSHIM_REQUIRED(NAME); }
// static const char *bare_optional(void) { return HIPSHIM_OPTIONAL(NAME); }
//
// static int bare_call(const void *t, int device, uintptr_t stream, uintptr_t ready, uint64_t r, uintptr_t done, uint64_t d, int ask, int *queued) {
//   return device;
// }
import "C"

import (
	"strings"
	"unsafe"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// Table is a runtime of no-ops, less the entry point named missing.
func Table(missing string) (*driver.Table, error) {
	name := C.CString(missing)
	defer C.free(unsafe.Pointer(name))
	t, lacks, code := driver.New(C.bare_finder(), unsafe.Pointer(name), "bare")
	return driver.Check(t, lacks, code, "bare")
}

// Call crosses into C and back, with as many arguments as the widest hot call.
func Call(device int, stream, ready uintptr, r uint64, done uintptr, d uint64) (queued, code int) {
	var n C.int
	e := C.bare_call(nil, C.int(device), C.uintptr_t(stream), C.uintptr_t(ready), C.uint64_t(r), C.uintptr_t(done), C.uint64_t(d), 0, &n)
	return int(n), int(e)
}

// Required names the entry points that no runtime may lack.
func Required() []string { return strings.Fields(C.GoString(C.bare_required())) }

// Optional names some that it may.
func Optional() []string { return strings.Fields(C.GoString(C.bare_optional())) }
