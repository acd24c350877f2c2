//go:build cgo && linux

package soft

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Wno-unused-parameter -I${SRCDIR}/../../../../csrc/softhip
// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files -ldl
// #include <stdlib.h>
// #include "softhip.h"
// #include "soft.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	_ "github.com/hipfabric/hipfabric/csrc/mailbox" // its kernels' twins
	_ "github.com/hipfabric/hipfabric/csrc/softhip" // the C behind the header
	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// Open claims the process's one world and begins it with these settings.
func Open(settings string) (*driver.Table, error) {
	text := C.CString(settings)
	defer C.free(unsafe.Pointer(text))
	var why [512]byte
	if C.soft_open(text, (*C.char)(unsafe.Pointer(&why)), C.size_t(len(why))) != 0 {
		return nil, errors.New(cut(why[:]))
	}
	t, missing, code := driver.New(unsafe.Pointer(C.soft_find), nil, "the software device")
	if t == nil {
		Close()
		if missing != "" {
			return nil, &driver.LoadError{Library: "the software device", Symbol: missing}
		}
		return nil, fmt.Errorf("the software device: hipRuntimeGetVersion gives %d", code)
	}
	return t, nil
}

// Close ends the world, whatever is parked, and gives up the claim.
func Close() { C.soft_close() }

// Do runs one control: "hold", "release" or "step" of a queue, "land", "settle" of n milliseconds.
func Do(what string, queue, n int) error {
	text := C.CString(what)
	defer C.free(unsafe.Pointer(text))
	var why [512]byte
	if C.soft_do(text, C.int(queue), C.uint(n), (*C.char)(unsafe.Pointer(&why)), C.size_t(len(why))) != 0 {
		return errors.New(cut(why[:]))
	}
	return nil
}

// Fault plants a failure.
func Fault(spec string) error {
	text := C.CString(spec)
	defer C.free(unsafe.Pointer(text))
	var why [512]byte
	if C.soft_fault(text, (*C.char)(unsafe.Pointer(&why)), C.size_t(len(why))) != 0 {
		return errors.New(cut(why[:]))
	}
	return nil
}

// Kernel gives kernel name the twin at symbol of the shared library so; sizes are its parameters' bytes, or empty where
// the library tells them.
func Kernel(name, so, symbol string, sizes []uint32) error {
	n, file, s := C.CString(name), C.CString(so), C.CString(symbol)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(file))
	defer C.free(unsafe.Pointer(s))
	var why [512]byte
	if C.soft_kernel(n, file, s, (*C.uint)(unsafe.SliceData(sizes)), C.uint(len(sizes)), (*C.char)(unsafe.Pointer(&why)), C.size_t(len(why))) != 0 {
		return errors.New(cut(why[:]))
	}
	return nil
}

// Queue is the number of the queue behind a stream, -1 without one.
func Queue(stream uintptr) int { return int(C.soft_queue(C.uintptr_t(stream))) }

// Ring is the number of a device's SDMA ring, -1 without one.
func Ring(device, index int) int { return int(C.softhip_ring(C.int(device), C.int(index))) }

// Parked describes each queue that has work.
func Parked() string {
	return grow(func(b *C.char, n C.size_t) C.int { return C.softhip_parked(b, n) })
}

// Leaks lists what is still allocated.
func Leaks() string { return grow(func(b *C.char, n C.size_t) C.int { return C.softhip_leaks(b, n) }) }

// Reports lists misuse.
func Reports() string {
	return grow(func(b *C.char, n C.size_t) C.int { return C.softhip_reports(b, n) })
}

// grow calls f with more room until its text fits.
func grow(f func(*C.char, C.size_t) C.int) string {
	for size := 4096; ; {
		b := (*C.char)(C.malloc(C.size_t(size)))
		n := int(f(b, C.size_t(size)))
		if n < size {
			s := C.GoString(b)
			C.free(unsafe.Pointer(b))
			return s
		}
		C.free(unsafe.Pointer(b))
		size = n + 1024
	}
}

// Trace gives the newest operations, oldest first.
func Trace() []Op {
	const most = 8192
	ops := (*[most]C.softhip_op)(C.malloc(most * C.sizeof_softhip_op))
	defer C.free(unsafe.Pointer(ops))
	out := make([]Op, int(C.softhip_trace(&ops[0], most)))
	for i := range out {
		o := &ops[i]
		out[i] = Op{
			Number: uint64(o.number), Stream: uint64(o.stream),
			Queued: uint64(o.queued_ns), Start: uint64(o.start_ns), End: uint64(o.end_ns),
			Address: uint64(o.address), Bytes: uint64(o.bytes), Value: uint64(o.value),
			Device: int(o.device), Queue: int(o.queue), Code: int(o.code),
			Ring: o.ring != 0, Name: C.GoString(&o.name[0]),
		}
	}
	return out
}

func cut(b []byte) string { return C.GoString((*C.char)(unsafe.Pointer(unsafe.SliceData(b)))) }
