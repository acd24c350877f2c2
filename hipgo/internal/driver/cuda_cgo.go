//go:build cgo && linux

package driver

// #cgo noescape hipshim_cuda_load
// #cgo noescape hipshim_cuda_where
// #include "cuda_load.h"
import "C"

import "unsafe"

// cudaLoad gives HIP's table over the driver behind a handle, the same each time.
func cudaLoad(handle uintptr) (t *Table, missing string, code int, second bool) {
	var c *C.struct_hipshim
	var lacks [128]byte
	e := C.hipshim_cuda_load(C.uintptr_t(handle), &c, (*C.char)(unsafe.Pointer(&lacks)), C.size_t(len(lacks)))
	if e == C.HIPSHIM_CUDA_SECOND {
		return nil, "", 0, true
	}
	t, missing, code = table(c, e, lacks[:])
	return t, missing, code, false
}

// cudaWhere names the file that the handle's driver comes from; "" where it has none.
func cudaWhere(handle uintptr) string {
	var file [1024]byte
	C.hipshim_cuda_where(C.uintptr_t(handle), (*C.char)(unsafe.Pointer(&file)), C.size_t(len(file)))
	return text(file[:])
}
