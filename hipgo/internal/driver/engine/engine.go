//go:build cgo && linux

package engine

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra
// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdint.h>
// #include <stdlib.h>
//
// static uintptr_t engine_open(const char *path) { return (uintptr_t)dlopen(path, RTLD_NOW | RTLD_LOCAL); }
//
// // FIND gives the function of that name, or returns -1.
// #define FIND(f, name, ...) int (*f)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym((void *)lib, name); if (!f) return -1
// static int set_device(uintptr_t lib, int device) { FIND(f, "hipSetDevice", int); return f(device); }
// static int get_device(uintptr_t lib, int *device) { FIND(f, "hipGetDevice", int *); return f(device); }
// static int allocate(uintptr_t lib, uintptr_t *p, size_t n) {
//   FIND(f, "hipMalloc", void **, size_t);
//   void *made = 0;
//   int e = f(&made, n);
//   *p = (uintptr_t)made;
//   return e;
// }
// static int release(uintptr_t lib, uintptr_t p) { FIND(f, "hipFree", void *); return f((void *)p); }
// static int create(uintptr_t lib, uintptr_t *stream) {
//   FIND(f, "hipStreamCreateWithFlags", void **, unsigned);
//   void *made = 0;
//   int e = f(&made, 1); // hipStreamNonBlocking
//   *stream = (uintptr_t)made;
//   return e;
// }
// static int destroy(uintptr_t lib, uintptr_t stream) { FIND(f, "hipStreamDestroy", void *); return f((void *)stream); }
// static int copy(uintptr_t lib, uintptr_t to, uintptr_t from, size_t n, int kind) {
//   FIND(f, "hipMemcpy", void *, const void *, size_t, int);
//   return f((void *)to, (void *)from, n, kind);
// }
// static int copy_async(uintptr_t lib, uintptr_t to, uintptr_t from, size_t n, uintptr_t stream) {
//   FIND(f, "hipMemcpyAsync", void *, const void *, size_t, int, void *);
//   return f((void *)to, (void *)from, n, 3, (void *)stream); // hipMemcpyDeviceToDevice
// }
// static int upload(uintptr_t lib, uintptr_t to, const void *from, size_t n) { return copy(lib, to, (uintptr_t)from, n, 1); }
// static int download(uintptr_t lib, void *to, uintptr_t from, size_t n) { return copy(lib, (uintptr_t)to, from, n, 2); }
import "C"

import (
	"fmt"
	"unsafe"
)

// Library is a handle that dlopen gave. Its methods are for the calling thread's current device, as HIP's are.
type Library uintptr

// Open is dlopen; the library stays for good.
func Open(path string) (Library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	h := C.engine_open(name)
	if h == 0 {
		return 0, fmt.Errorf("engine: dlopen does not open %s", path)
	}
	return Library(h), nil
}

func (l Library) c() C.uintptr_t { return C.uintptr_t(l) }

func check(call string, code C.int) error {
	if code != 0 {
		return fmt.Errorf("engine: %s: code %d", call, code)
	}
	return nil
}

// SetDevice makes a device the calling thread's current one.
func (l Library) SetDevice(device int) error {
	return check("hipSetDevice", C.set_device(l.c(), C.int(device)))
}

// Device is the calling thread's current one.
func (l Library) Device() (int, error) {
	var device C.int
	err := check("hipGetDevice", C.get_device(l.c(), &device))
	return int(device), err
}

// Malloc gives n bytes of device memory.
func (l Library) Malloc(n int) (uintptr, error) {
	var p C.uintptr_t
	err := check("hipMalloc", C.allocate(l.c(), &p, C.size_t(n)))
	return uintptr(p), err
}

// Free frees them.
func (l Library) Free(p uintptr) error { return check("hipFree", C.release(l.c(), C.uintptr_t(p))) }

// NewStream makes a stream that does not wait for the null stream.
func (l Library) NewStream() (uintptr, error) {
	var s C.uintptr_t
	err := check("hipStreamCreateWithFlags", C.create(l.c(), &s))
	return uintptr(s), err
}

// Destroy ends a stream.
func (l Library) Destroy(stream uintptr) error {
	return check("hipStreamDestroy", C.destroy(l.c(), C.uintptr_t(stream)))
}

// Upload copies to the device and returns when it is done.
func (l Library) Upload(to uintptr, from []byte) error {
	return check("hipMemcpy", C.upload(l.c(), C.uintptr_t(to), unsafe.Pointer(unsafe.SliceData(from)), C.size_t(len(from))))
}

// Download copies from the device and returns when it is done.
func (l Library) Download(to []byte, from uintptr) error {
	return check("hipMemcpy", C.download(l.c(), unsafe.Pointer(unsafe.SliceData(to)), C.uintptr_t(from), C.size_t(len(to))))
}

// Copy queues a copy within the device.
func (l Library) Copy(to, from uintptr, n int, stream uintptr) error {
	return check("hipMemcpyAsync", C.copy_async(l.c(), C.uintptr_t(to), C.uintptr_t(from), C.size_t(n), C.uintptr_t(stream)))
}
