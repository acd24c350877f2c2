//go:build cgo && linux

package driver

// #cgo noescape hipshim_host_malloc_flags
// #cgo nocallback hipshim_host_malloc_flags
// #include "flags.h"
import "C"

import "unsafe"

// HostMallocFlags is hipHostMalloc with any flags, for package conform; HostFree frees it.
func (t *Table) HostMallocFlags(device, n int, flags uint32) ([]byte, uintptr, int) {
	var host unsafe.Pointer
	var p C.uintptr_t
	if e := C.hipshim_host_malloc_flags(t.c, C.int(device), C.size_t(n), C.uint(flags), &host, &p); e != 0 {
		return nil, 0, int(e)
	}
	return unsafe.Slice((*byte)(host), n), uintptr(p), 0
}

// Write64Flags is hipStreamWriteValue64 with any flags, for package conform.
func (t *Table) Write64Flags(device int, stream, p uintptr, v uint64, flags uint32) int {
	return int(C.hipshim_write64_flags(t.c, C.int(device), C.uintptr_t(stream), C.uintptr_t(p), C.uint64_t(v), C.uint(flags)))
}
