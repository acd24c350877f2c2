//go:build cgo && linux && !noverbs

package driver

// #cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -I${SRCDIR}/../../../csrc/verbsshim
// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files -ldl
// #cgo noescape verbsshim_open
// #cgo noescape verbsshim_load
// #cgo noescape verbsshim_devices
// #cgo nocallback verbsshim_devices
// #cgo noescape verbsshim_context
// #cgo nocallback verbsshim_context
// #cgo noescape verbsshim_close
// #cgo nocallback verbsshim_close
// #cgo noescape verbsshim_query_device
// #cgo nocallback verbsshim_query_device
// #cgo noescape verbsshim_query_port
// #cgo nocallback verbsshim_query_port
// #cgo noescape verbsshim_gids
// #cgo nocallback verbsshim_gids
// #cgo noescape verbsshim_device_name
// #cgo nocallback verbsshim_device_name
// #cgo noescape verbsshim_query_gid
// #cgo nocallback verbsshim_query_gid
// #cgo noescape verbsshim_query_pkey
// #cgo nocallback verbsshim_query_pkey
// #cgo noescape verbsshim_async_event
// #cgo nocallback verbsshim_async_event
// #include <stdlib.h>
// #include "verbsshim.h"
import "C"

import (
	"net"
	"syscall"
	"unsafe"

	_ "github.com/hipfabric/hipfabric/csrc/verbsshim" // the C behind the header
)

// Built says that this build can load libibverbs.
const Built = true

// Library is libibverbs' table. It lasts as long as the process.
type Library struct{ c *C.struct_verbsshim }

var _ Table = (*Library)(nil)

// open gives a handle of dlopen.
func open(path string) (handle uintptr, why string) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var said [1024]byte
	h := C.verbsshim_open(name, (*C.char)(unsafe.Pointer(&said)), C.size_t(len(said)))
	return uintptr(h), text(said[:])
}

// load gives the table of a handle, the same each time.
func load(handle uintptr) (l *Library, missing string, e syscall.Errno) {
	var c *C.struct_verbsshim
	var lacks [128]byte
	code := C.verbsshim_load(C.uintptr_t(handle), &c, (*C.char)(unsafe.Pointer(&lacks)), C.size_t(len(lacks)))
	switch {
	case code == C.VERBSSHIM_MISSING:
		return nil, text(lacks[:]), 0
	case code != 0:
		return nil, "", syscall.Errno(code)
	}
	return &Library{c}, "", 0
}

func text(b []byte) string { return C.GoString((*C.char)(unsafe.Pointer(unsafe.SliceData(b)))) }

func chars(c []C.char) string { return C.GoString(unsafe.SliceData(c)) }

// Library names the file.
func (l *Library) Library() string { return C.GoString(C.verbsshim_library(l.c)) }

// Has says whether an optional entry point is there.
func (l *Library) Has(s Symbol) bool { return C.verbsshim_has(l.c, C.int(s)) != 0 }

// Absence says why there are no devices.
func (l *Library) Absence() string { return absence("/sys") }

// What a library may count up to: more is no device, and sizes nothing here.
const (
	mostDevices = 4096
	mostGIDs    = 1 << 16
)

// Devices is ibv_get_device_list. EOVERFLOW: it counts fewer than none, or more than there can be.
func (l *Library) Devices() ([]Device, syscall.Errno) {
	for room := 16; ; {
		list := make([]C.struct_verbsshim_device, room)
		var n C.int
		if e := C.verbsshim_devices(l.c, unsafe.SliceData(list), C.int(room), &n); e != 0 {
			return nil, syscall.Errno(e)
		}
		if n < 0 || n > mostDevices {
			return nil, syscall.EOVERFLOW
		}
		if int(n) > room {
			room = int(n)
			continue
		}
		all := make([]Device, n)
		for i := range all {
			d := &list[i]
			all[i] = Device{
				Name: chars(d.name[:]), Node: chars(d.node[:]), GUID: uint64(d.guid), Index: int(d.index),
				NodeType: int(d.node_type), Transport: int(d.transport),
			}
		}
		return all, 0
	}
}

// Open is ibv_open_device.
func (l *Library) Open(device string) (uintptr, syscall.Errno) {
	name := C.CString(device)
	defer C.free(unsafe.Pointer(name))
	var c C.uintptr_t
	e := C.verbsshim_context(l.c, name, &c)
	return uintptr(c), syscall.Errno(e)
}

// Close is ibv_close_device.
func (l *Library) Close(context uintptr) syscall.Errno {
	return syscall.Errno(C.verbsshim_close(l.c, C.uintptr_t(context)))
}

// Attr is ibv_query_device.
func (l *Library) Attr(context uintptr) (DeviceAttr, syscall.Errno) {
	var a C.struct_verbsshim_attr
	if e := C.verbsshim_query_device(l.c, C.uintptr_t(context), &a); e != 0 {
		return DeviceAttr{}, syscall.Errno(e)
	}
	return DeviceAttr{
		Firmware: chars(a.firmware[:]), NodeGUID: uint64(a.node_guid), MaxMRBytes: uint64(a.max_mr_bytes),
		VendorID: uint32(a.vendor_id), PartID: uint32(a.part_id), HardwareVersion: uint32(a.hardware_version),
		MaxQP: int(a.max_qp), MaxQPWR: int(a.max_qp_wr), MaxSGE: int(a.max_sge), MaxCQ: int(a.max_cq), MaxCQE: int(a.max_cqe),
		MaxMR: int(a.max_mr), MaxPD: int(a.max_pd), MaxReadsIn: int(a.max_reads_in), MaxReadsOut: int(a.max_reads_out),
		PKeys: int(a.pkeys), Ports: int(a.ports),
	}, 0
}

// Port is ibv_query_port.
func (l *Library) Port(context uintptr, port int) (Port, syscall.Errno) {
	var p Port
	e := C.verbsshim_query_port(l.c, C.uintptr_t(context), C.int(port), (*C.struct_verbsshim_port)(unsafe.Pointer(&p)))
	return p, syscall.Errno(e)
}

// GIDs is ibv_query_gid_table. Without it the table is read slot by slot, and types and interfaces from sysfs. EOVERFLOW: as Devices.
func (l *Library) GIDs(context uintptr) ([]GID, syscall.Errno) {
	attr, e := l.Attr(context)
	if e != 0 {
		return nil, e
	}
	counts := make([]int, attr.Ports)
	room := 0
	for i := range counts {
		p, e := l.Port(context, i+1)
		if e != 0 {
			return nil, e
		}
		counts[i] = int(p.GIDs)
		if room += counts[i]; room > mostGIDs {
			return nil, syscall.EOVERFLOW
		}
	}
	if !l.Has(SymbolGIDTable) {
		return l.slots(context, counts)
	}
	raw := make([]C.struct_verbsshim_gid, max(room, 1))
	var n C.int
	if e := C.verbsshim_gids(l.c, C.uintptr_t(context), unsafe.SliceData(raw), C.int(len(raw)), &n); e != 0 {
		return nil, syscall.Errno(e)
	}
	if int(n) > len(raw) {
		return nil, syscall.EOVERFLOW
	}
	all := make([]GID, n)
	for i := range all {
		g := (*[16]byte)(unsafe.Pointer(&raw[i].gid))
		all[i] = GID{GID: *g, Index: uint32(raw[i].index), Port: uint32(raw[i].port), Type: uint32(raw[i]._type), Interface: uint32(raw[i]._interface)}
		if netdev, err := net.InterfaceByIndex(int(all[i].Interface)); err == nil {
			all[i].NetDev = netdev.Name
		}
	}
	return all, 0
}

// slots is the table without ibv_query_gid_table.
func (l *Library) slots(context uintptr, counts []int) ([]GID, syscall.Errno) {
	var name [64]byte
	C.verbsshim_device_name(l.c, C.uintptr_t(context), (*C.char)(unsafe.Pointer(&name)), C.size_t(len(name)))
	return slots("/sys/class/infiniband/"+text(name[:])+"/ports", counts, func(port, index int) (gid [16]byte, e syscall.Errno) {
		code := C.verbsshim_query_gid(l.c, C.uintptr_t(context), C.int(port), C.int(index), (*C.uint8_t)(unsafe.Pointer(&gid)))
		return gid, syscall.Errno(code)
	})
}

// PKey is ibv_query_pkey.
func (l *Library) PKey(context uintptr, port, index int) (uint16, syscall.Errno) {
	var key C.uint16_t
	e := C.verbsshim_query_pkey(l.c, C.uintptr_t(context), C.int(port), C.int(index), &key)
	return uint16(key), syscall.Errno(e)
}

// AsyncFD is the context's async_fd.
func (l *Library) AsyncFD(context uintptr) int {
	return int(C.verbsshim_async_fd(C.uintptr_t(context)))
}

// AsyncEvent is ibv_get_async_event and ibv_ack_async_event.
func (l *Library) AsyncEvent(context uintptr) (Async, syscall.Errno) {
	var kind C.uint32_t
	var port C.int
	var handle C.uintptr_t
	e := C.verbsshim_async_event(l.c, C.uintptr_t(context), &kind, &port, &handle)
	return Async{Type: uint32(kind), Port: int(port), Handle: uintptr(handle)}, syscall.Errno(e)
}
