//go:build cgo && linux

package driver

// #cgo noescape hipshim_given
// #include "hipshim.h"
import "C"

// given says whether a handle is one that dlopen gave, of a library that is loaded still.
func given(handle uintptr) bool { return C.hipshim_given(C.uintptr_t(handle)) != 0 }
