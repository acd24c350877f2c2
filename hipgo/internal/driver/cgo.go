//go:build cgo && linux

package driver

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -I${SRCDIR}/../../../csrc/hipshim
// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files -ldl
// #cgo noescape hipshim_new
// #cgo noescape hipshim_open
// #cgo noescape hipshim_where
// #cgo noescape hipshim_load
// #cgo noescape hipshim_count
// #cgo nocallback hipshim_count
// #cgo noescape hipshim_current
// #cgo nocallback hipshim_current
// #cgo noescape hipshim_set_current
// #cgo nocallback hipshim_set_current
// #cgo noescape hipshim_exchange_capture_mode
// #cgo nocallback hipshim_exchange_capture_mode
// #cgo noescape hipshim_attribute
// #cgo nocallback hipshim_attribute
// #cgo noescape hipshim_name
// #cgo nocallback hipshim_name
// #cgo noescape hipshim_pci
// #cgo nocallback hipshim_pci
// #cgo noescape hipshim_arch
// #cgo nocallback hipshim_arch
// #cgo noescape hipshim_memory
// #cgo nocallback hipshim_memory
// #cgo noescape hipshim_malloc
// #cgo nocallback hipshim_malloc
// #cgo noescape hipshim_free
// #cgo nocallback hipshim_free
// #cgo noescape hipshim_host_malloc
// #cgo nocallback hipshim_host_malloc
// #cgo noescape hipshim_host_free
// #cgo nocallback hipshim_host_free
// #cgo noescape hipshim_pointer
// #cgo nocallback hipshim_pointer
// #cgo noescape hipshim_export_dmabuf
// #cgo nocallback hipshim_export_dmabuf
// #cgo noescape hipshim_stream_create
// #cgo nocallback hipshim_stream_create
// #cgo noescape hipshim_stream_create_priority
// #cgo nocallback hipshim_stream_create_priority
// #cgo noescape hipshim_stream_create_mask
// #cgo nocallback hipshim_stream_create_mask
// #cgo noescape hipshim_priority_range
// #cgo nocallback hipshim_priority_range
// #cgo noescape hipshim_stream_destroy
// #cgo nocallback hipshim_stream_destroy
// #cgo noescape hipshim_stream_query
// #cgo nocallback hipshim_stream_query
// #cgo noescape hipshim_stream_capturing
// #cgo nocallback hipshim_stream_capturing
// #cgo noescape hipshim_stream_wait_event
// #cgo nocallback hipshim_stream_wait_event
// #cgo noescape hipshim_copy
// #cgo nocallback hipshim_copy
// #cgo noescape hipshim_memset
// #cgo nocallback hipshim_memset
// #cgo noescape hipshim_wait64
// #cgo nocallback hipshim_wait64
// #cgo noescape hipshim_wait32
// #cgo nocallback hipshim_wait32
// #cgo noescape hipshim_write64
// #cgo nocallback hipshim_write64
// #cgo noescape hipshim_write32
// #cgo nocallback hipshim_write32
// #cgo noescape hipshim_write_wait
// #cgo nocallback hipshim_write_wait
// #cgo noescape hipshim_event_create
// #cgo nocallback hipshim_event_create
// #cgo noescape hipshim_event_destroy
// #cgo nocallback hipshim_event_destroy
// #cgo noescape hipshim_event_record
// #cgo nocallback hipshim_event_record
// #cgo noescape hipshim_event_query
// #cgo nocallback hipshim_event_query
// #cgo noescape hipshim_event_elapsed
// #cgo nocallback hipshim_event_elapsed
// #cgo noescape hipshim_begin_capture
// #cgo nocallback hipshim_begin_capture
// #cgo noescape hipshim_end_capture
// #cgo nocallback hipshim_end_capture
// #cgo noescape hipshim_graph_instantiate
// #cgo nocallback hipshim_graph_instantiate
// #cgo noescape hipshim_graph_launch
// #cgo nocallback hipshim_graph_launch
// #cgo noescape hipshim_graph_destroy
// #cgo nocallback hipshim_graph_destroy
// #cgo noescape hipshim_exec_destroy
// #cgo nocallback hipshim_exec_destroy
// #cgo noescape hipshim_module_load
// #cgo nocallback hipshim_module_load
// #cgo noescape hipshim_module_unload
// #cgo nocallback hipshim_module_unload
// #cgo noescape hipshim_module_function
// #cgo nocallback hipshim_module_function
// #cgo noescape hipshim_launch
// #cgo nocallback hipshim_launch
// #include <stdlib.h>
// #include "hipshim.h"
import "C"

import (
	"unsafe"

	_ "github.com/hipfabric/hipfabric/csrc/hipshim" // the C behind the header
)

// They are what hipshim.h says.
var _ = [1]int{}[(Captures-C.HIPSHIM_CAPTURES)|(Unanswered-C.HIPSHIM_UNANSWERED)]

// Built says that this build can load a runtime.
const Built = true

// Table is a runtime's entry points. It lasts as long as the process.
type Table struct {
	c   *C.struct_hipshim
	hot C.uintptr_t // c, for the calls whose time counts: a pointer is looked at as it crosses
}

// New fills a table by find, a C function void *(void *context, const char *name). library names what find looks in.
// missing names the first required entry point that find lacks.
func New(find, context unsafe.Pointer, library string) (t *Table, missing string, code int) {
	if find == nil {
		return nil, "a resolver", 0
	}
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var c *C.struct_hipshim
	var lacks [128]byte
	e := C.hipshim_new((C.hipshim_find)(find), context, name, &c, (*C.char)(unsafe.Pointer(&lacks)), C.size_t(len(lacks)))
	return table(c, e, lacks[:])
}

func table(c *C.struct_hipshim, e C.int, lacks []byte) (*Table, string, int) {
	switch {
	case e == C.HIPSHIM_MISSING:
		return nil, text(lacks), 0
	case e != 0:
		return nil, "", int(e)
	}
	return &Table{c, C.uintptr_t(uintptr(unsafe.Pointer(c)))}, "", 0
}

// open gives a handle of dlopen, with resident set only of a library that the process already has.
func open(path string, resident bool) (handle uintptr, why string) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var said [1024]byte
	h := C.hipshim_open(name, truth(resident), (*C.char)(unsafe.Pointer(&said)), C.size_t(len(said)))
	return uintptr(h), text(said[:])
}

// where names the file that the handle's runtime comes from; "" where it has none.
func where(handle uintptr) string {
	var file [1024]byte
	C.hipshim_where(C.uintptr_t(handle), (*C.char)(unsafe.Pointer(&file)), C.size_t(len(file)))
	return text(file[:])
}

// load gives the table of a handle, the same each time.
func load(handle uintptr) (t *Table, missing string, code int) {
	var c *C.struct_hipshim
	var lacks [128]byte
	e := C.hipshim_load(C.uintptr_t(handle), &c, (*C.char)(unsafe.Pointer(&lacks)), C.size_t(len(lacks)))
	return table(c, e, lacks[:])
}

func text(b []byte) string { return C.GoString((*C.char)(unsafe.Pointer(unsafe.SliceData(b)))) }

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// Library names the file of the runtime.
func (t *Table) Library() string { return C.GoString(C.hipshim_library(t.c)) }

// Version is what hipRuntimeGetVersion returned.
func (t *Table) Version() int { return int(C.hipshim_version(t.c)) }

// Has says whether an optional entry point is there.
func (t *Table) Has(s Symbol) bool { return C.hipshim_has(t.c, C.int(s)) != 0 }

// Count is hipInit and hipGetDeviceCount.
func (t *Table) Count() (n, code int) {
	var count C.int
	e := C.hipshim_count(t.c, &count)
	return int(count), int(e)
}

// Attribute is hipDeviceGetAttribute.
func (t *Table) Attribute(device, attribute int) (value, code int) {
	var v C.int
	e := C.hipshim_attribute(t.c, C.int(device), C.int(attribute), &v)
	return int(v), int(e)
}

// Name is hipDeviceGetName.
func (t *Table) Name(device int) (string, int) {
	var b [256]byte
	e := C.hipshim_name(t.c, C.int(device), (*C.char)(unsafe.Pointer(&b)), C.size_t(len(b)))
	return text(b[:]), int(e)
}

// PCI is hipDeviceGetPCIBusId.
func (t *Table) PCI(device int) (string, int) {
	var b [64]byte
	e := C.hipshim_pci(t.c, C.int(device), (*C.char)(unsafe.Pointer(&b)), C.size_t(len(b)))
	return text(b[:]), int(e)
}

// Arch is gcnArchName of hipGetDeviceProperties, read at its version's offset; 801 where the runtime has no properties.
func (t *Table) Arch(device int) (string, int) {
	var b [256]byte
	e := C.hipshim_arch(t.c, C.int(device), (*C.char)(unsafe.Pointer(&b)), C.size_t(len(b)))
	return text(b[:]), int(e)
}

// Memory is hipMemGetInfo.
func (t *Table) Memory(device int) (available, total uint64, code int) {
	var a, b C.uint64_t
	e := C.hipshim_memory(t.c, C.int(device), &a, &b)
	return uint64(a), uint64(b), int(e)
}

// PriorityRange is hipDeviceGetStreamPriorityRange.
func (t *Table) PriorityRange(device int) (least, greatest, code int) {
	var a, b C.int
	e := C.hipshim_priority_range(t.c, C.int(device), &a, &b)
	return int(a), int(b), int(e)
}

// Malloc is hipMalloc.
func (t *Table) Malloc(device, n int) (uintptr, int) {
	var p C.uintptr_t
	e := C.hipshim_malloc(t.c, C.int(device), C.size_t(n), &p)
	return uintptr(p), int(e)
}

// Free is hipFree.
func (t *Table) Free(device int, p uintptr) int {
	return int(C.hipshim_free(t.c, C.int(device), C.uintptr_t(p)))
}

// HostMalloc is hipHostMalloc, mapped and coherent, and hipHostGetDevicePointer.
func (t *Table) HostMalloc(device, n int) ([]byte, uintptr, int) {
	var host unsafe.Pointer
	var p C.uintptr_t
	if e := C.hipshim_host_malloc(t.c, C.int(device), C.size_t(n), &host, &p); e != 0 {
		return nil, 0, int(e)
	}
	return unsafe.Slice((*byte)(host), n), uintptr(p), 0
}

// HostFree is hipHostFree of what HostMalloc gave.
func (t *Table) HostFree(device int, mem []byte) int {
	return int(C.hipshim_host_free(t.c, C.int(device), unsafe.Pointer(unsafe.SliceData(mem))))
}

// Pointer is hipPointerGetAttributes and, where it is there, hipMemGetAddressRange.
func (t *Table) Pointer(device int, p uintptr) (Pointer, int) {
	var out C.struct_hipshim_pointer
	e := C.hipshim_pointer(t.c, C.int(device), C.uintptr_t(p), &out)
	return Pointer{
		Type: int(out._type), Device: int(out.device), DevicePtr: uintptr(out.device_ptr),
		HostPtr: uintptr(out.host_ptr), Base: uintptr(out.base), Size: int(out.bytes),
	}, int(e)
}

// ExportDMABuf is ROCr's export, else hipMemGetHandleForAddressRange.
func (t *Table) ExportDMABuf(device int, p uintptr, n int) (fd int, offset uint64, code int) {
	file, at := C.int(-1), C.uint64_t(0)
	e := C.hipshim_export_dmabuf(t.c, C.int(device), C.uintptr_t(p), C.size_t(n), &file, &at)
	return int(file), uint64(at), int(e)
}

// StreamCreate is hipStreamCreateWithFlags.
func (t *Table) StreamCreate(device int, flags uint32) (uintptr, int) {
	var s C.uintptr_t
	e := C.hipshim_stream_create(t.c, C.int(device), C.uint(flags), &s)
	return uintptr(s), int(e)
}

// StreamCreatePriority is hipStreamCreateWithPriority.
func (t *Table) StreamCreatePriority(device int, flags uint32, priority int) (uintptr, int) {
	var s C.uintptr_t
	e := C.hipshim_stream_create_priority(t.c, C.int(device), C.uint(flags), C.int(priority), &s)
	return uintptr(s), int(e)
}

// StreamCreateMask is hipExtStreamCreateWithCUMask; it wants one word or more.
func (t *Table) StreamCreateMask(device int, mask []uint32) (uintptr, int) {
	var s C.uintptr_t
	e := C.hipshim_stream_create_mask(t.c, C.int(device), C.uint32_t(len(mask)), (*C.uint32_t)(unsafe.SliceData(mask)), &s)
	return uintptr(s), int(e)
}

// StreamDestroy is hipStreamDestroy.
func (t *Table) StreamDestroy(device int, stream uintptr) int {
	return int(C.hipshim_stream_destroy(t.c, C.int(device), C.uintptr_t(stream)))
}

// StreamQuery is hipStreamQuery.
func (t *Table) StreamQuery(device int, stream uintptr) int {
	return int(C.hipshim_stream_query(t.c, C.int(device), C.uintptr_t(stream)))
}

// StreamCapturing is hipStreamIsCapturing.
func (t *Table) StreamCapturing(device int, stream uintptr) (status, code int) {
	var s C.int
	e := C.hipshim_stream_capturing(t.hot, C.int(device), C.uintptr_t(stream), &s)
	return int(s), int(e)
}

// StreamWaitEvent is hipStreamWaitEvent.
func (t *Table) StreamWaitEvent(device int, stream, event uintptr) int {
	return int(C.hipshim_stream_wait_event(t.c, C.int(device), C.uintptr_t(stream), C.uintptr_t(event)))
}

// Copy is hipMemcpyAsync.
func (t *Table) Copy(device int, stream, dst, src uintptr, n, kind int) int {
	return int(C.hipshim_copy(t.hot, C.int(device), C.uintptr_t(stream), C.uintptr_t(dst), C.uintptr_t(src), C.size_t(n), C.int(kind)))
}

// Memset is hipMemsetAsync.
func (t *Table) Memset(device int, stream, dst uintptr, value byte, n int) int {
	return int(C.hipshim_memset(t.c, C.int(device), C.uintptr_t(stream), C.uintptr_t(dst), C.int(value), C.size_t(n)))
}

// Wait64 is hipStreamWaitValue64.
func (t *Table) Wait64(device int, stream, p uintptr, v uint64, flags uint32, mask uint64) int {
	return int(C.hipshim_wait64(t.hot, C.int(device), C.uintptr_t(stream), C.uintptr_t(p), C.uint64_t(v), C.uint(flags), C.uint64_t(mask)))
}

// Wait32 is hipStreamWaitValue32.
func (t *Table) Wait32(device int, stream, p uintptr, v, flags, mask uint32) int {
	return int(C.hipshim_wait32(t.c, C.int(device), C.uintptr_t(stream), C.uintptr_t(p), C.uint32_t(v), C.uint(flags), C.uint32_t(mask)))
}

// Write64 is hipStreamWriteValue64.
func (t *Table) Write64(device int, stream, p uintptr, v uint64) int {
	return int(C.hipshim_write64(t.hot, C.int(device), C.uintptr_t(stream), C.uintptr_t(p), C.uint64_t(v)))
}

// Write32 is hipStreamWriteValue32.
func (t *Table) Write32(device int, stream, p uintptr, v uint32) int {
	return int(C.hipshim_write32(t.c, C.int(device), C.uintptr_t(stream), C.uintptr_t(p), C.uint32_t(v)))
}

// WriteWait queues a write of r at ready and a wait for at least d at done. queued counts those that were queued. With ask it is
// Captures, and nothing is queued, on a stream that captures; Unanswered where the stream does not say.
func (t *Table) WriteWait(device int, stream, ready uintptr, r uint64, done uintptr, d uint64, ask bool) (queued, code int) {
	both := C.hipshim_write_wait(t.hot, C.int(device), C.uintptr_t(stream), C.uintptr_t(ready), C.uint64_t(r), C.uintptr_t(done), C.uint64_t(d), truth(ask))
	return int(both >> 32), int(int32(both))
}

// EventCreate is hipEventCreateWithFlags.
func (t *Table) EventCreate(device int, flags uint32) (uintptr, int) {
	var v C.uintptr_t
	e := C.hipshim_event_create(t.c, C.int(device), C.uint(flags), &v)
	return uintptr(v), int(e)
}

// EventDestroy is hipEventDestroy.
func (t *Table) EventDestroy(device int, event uintptr) int {
	return int(C.hipshim_event_destroy(t.c, C.int(device), C.uintptr_t(event)))
}

// EventRecord is hipEventRecord.
func (t *Table) EventRecord(device int, event, stream uintptr) int {
	return int(C.hipshim_event_record(t.hot, C.int(device), C.uintptr_t(event), C.uintptr_t(stream)))
}

// EventQuery is hipEventQuery.
func (t *Table) EventQuery(device int, event uintptr) int {
	return int(C.hipshim_event_query(t.hot, C.int(device), C.uintptr_t(event)))
}

// EventElapsed is hipEventElapsedTime, in milliseconds.
func (t *Table) EventElapsed(device int, start, stop uintptr) (float32, int) {
	var ms C.float
	e := C.hipshim_event_elapsed(t.c, C.int(device), C.uintptr_t(start), C.uintptr_t(stop), &ms)
	return float32(ms), int(e)
}

// BeginCapture is hipStreamBeginCapture.
func (t *Table) BeginCapture(device int, stream uintptr, mode int) int {
	return int(C.hipshim_begin_capture(t.c, C.int(device), C.uintptr_t(stream), C.int(mode)))
}

// EndCapture is hipStreamEndCapture.
func (t *Table) EndCapture(device int, stream uintptr) (uintptr, int) {
	var g C.uintptr_t
	e := C.hipshim_end_capture(t.c, C.int(device), C.uintptr_t(stream), &g)
	return uintptr(g), int(e)
}

// GraphInstantiate is hipGraphInstantiate.
func (t *Table) GraphInstantiate(device int, graph uintptr) (uintptr, int) {
	var x C.uintptr_t
	e := C.hipshim_graph_instantiate(t.c, C.int(device), C.uintptr_t(graph), &x)
	return uintptr(x), int(e)
}

// GraphLaunch is hipGraphLaunch.
func (t *Table) GraphLaunch(device int, exec, stream uintptr) int {
	return int(C.hipshim_graph_launch(t.c, C.int(device), C.uintptr_t(exec), C.uintptr_t(stream)))
}

// GraphDestroy is hipGraphDestroy.
func (t *Table) GraphDestroy(device int, graph uintptr) int {
	return int(C.hipshim_graph_destroy(t.c, C.int(device), C.uintptr_t(graph)))
}

// ExecDestroy is hipGraphExecDestroy.
func (t *Table) ExecDestroy(device int, exec uintptr) int {
	return int(C.hipshim_exec_destroy(t.c, C.int(device), C.uintptr_t(exec)))
}

// ModuleLoad is hipModuleLoadData of a copy in memory that ModuleUnload frees.
func (t *Table) ModuleLoad(device int, image []byte) (module uintptr, kept unsafe.Pointer, code int) {
	var m C.uintptr_t
	e := C.hipshim_module_load(t.c, C.int(device), unsafe.Pointer(unsafe.SliceData(image)), C.size_t(len(image)), &m, &kept)
	return uintptr(m), kept, int(e)
}

// ModuleUnload is hipModuleUnload.
func (t *Table) ModuleUnload(device int, module uintptr, kept unsafe.Pointer) int {
	return int(C.hipshim_module_unload(t.c, C.int(device), C.uintptr_t(module), kept))
}

// ModuleFunction is hipModuleGetFunction.
func (t *Table) ModuleFunction(device int, module uintptr, name string) (uintptr, int) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	var f C.uintptr_t
	e := C.hipshim_module_function(t.c, C.int(device), C.uintptr_t(module), s, &f)
	return uintptr(f), int(e)
}

// Launch is hipModuleLaunchKernel. Its arguments come packed one after the other, sizes telling them apart; all are copied.
func (t *Table) Launch(device int, stream, function uintptr, d Dims, args []byte, sizes []uint32) int {
	dims := C.struct_hipshim_dims{
		grid:   [3]C.uint{C.uint(d.Grid[0]), C.uint(d.Grid[1]), C.uint(d.Grid[2])},
		block:  [3]C.uint{C.uint(d.Block[0]), C.uint(d.Block[1]), C.uint(d.Block[2])},
		shared: C.uint(d.Shared),
	}
	return int(C.hipshim_launch(t.hot, C.int(device), C.uintptr_t(stream), C.uintptr_t(function), &dims,
		unsafe.Pointer(unsafe.SliceData(args)), (*C.uint32_t)(unsafe.SliceData(sizes)), C.uint(len(sizes))))
}

// Current is hipGetDevice: of the calling thread, so lock the goroutine to it.
func (t *Table) Current() (device, code int) {
	var d C.int
	e := C.hipshim_current(t.c, &d)
	return int(d), int(e)
}

// SetCurrent is hipSetDevice, as Current.
func (t *Table) SetCurrent(device int) int { return int(C.hipshim_set_current(t.c, C.int(device))) }

// LastError is hipGetLastError, as Current.
func (t *Table) LastError() int { return int(C.hipshim_last_error(t.c)) }

// ExchangeCaptureMode is hipThreadExchangeStreamCaptureMode, as Current; 801 where it is not there.
func (t *Table) ExchangeCaptureMode(mode int) (was, code int) {
	m := C.int(mode)
	e := C.hipshim_exchange_capture_mode(t.c, &m)
	return int(m), int(e)
}
