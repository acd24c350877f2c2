//go:build cgo && linux

package twin

// #cgo CFLAGS: -std=c11 -Wall -Wextra -Werror -I${SRCDIR}/..
// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files
// #define HF_HOST_BUILD
// #include "mailbox.h"
import "C"

import (
	"unsafe"

	_ "github.com/hipfabric/hipfabric/csrc/mailbox" // defines what is called here
)

// Stage runs the stage kernel on the calling thread, and returns when the launch has ended. args is a struct hf_args whose
// addresses are not Go's.
func Stage(args []byte, blocks, threads int) {
	C.hf_stage__host(unsafe.Pointer(unsafe.SliceData(args)), C.uint(blocks), C.uint(threads))
}

// Collect is Stage for the collect kernel.
func Collect(args []byte, blocks, threads int) {
	C.hf_collect__host(unsafe.Pointer(unsafe.SliceData(args)), C.uint(blocks), C.uint(threads))
}

// Layout gives the offset of each field as struct.field, the size of each struct by its name, and each constant.
func Layout() map[string]uint64 {
	var d C.struct_hf_device
	var h C.struct_hf_host
	var p C.struct_hf_piece
	var a C.struct_hf_args
	offsets := map[string]uintptr{
		"hf_device":                 unsafe.Sizeof(d),
		"hf_device.epoch":           unsafe.Offsetof(d.epoch),
		"hf_device.poison":          unsafe.Offsetof(d.poison),
		"hf_device.stage_arrived":   unsafe.Offsetof(d.stage_arrived),
		"hf_device.collect_arrived": unsafe.Offsetof(d.collect_arrived),
		"hf_host":                   unsafe.Sizeof(h),
		"hf_host.ready":             unsafe.Offsetof(h.ready),
		"hf_host.descriptor":        unsafe.Offsetof(h.descriptor),
		"hf_host.done":              unsafe.Offsetof(h.done),
		"hf_host.abort":             unsafe.Offsetof(h.abort),
		"hf_host.failed":            unsafe.Offsetof(h.failed),
		"hf_host.collected":         unsafe.Offsetof(h.collected),
		"hf_piece":                  unsafe.Sizeof(p),
		"hf_piece.memory":           unsafe.Offsetof(p.memory),
		"hf_piece.slab":             unsafe.Offsetof(p.slab),
		"hf_piece.bytes":            unsafe.Offsetof(p.bytes),
		"hf_args":                   unsafe.Sizeof(a),
		"hf_args.device":            unsafe.Offsetof(a.device),
		"hf_args.host":              unsafe.Offsetof(a.host),
		"hf_args.slab":              unsafe.Offsetof(a.slab),
		"hf_args.window":            unsafe.Offsetof(a.window),
		"hf_args.memory":            unsafe.Offsetof(a.memory),
		"hf_args.bytes":             unsafe.Offsetof(a.bytes),
		"hf_args.stride":            unsafe.Offsetof(a.stride),
		"hf_args.pitch":             unsafe.Offsetof(a.pitch),
		"hf_args.list":              unsafe.Offsetof(a.list),
		"hf_args.timeout":           unsafe.Offsetof(a.timeout),
		"hf_args.descriptor":        unsafe.Offsetof(a.descriptor),
		"hf_args.lengths":           unsafe.Offsetof(a.lengths),
		"hf_args.lengths_at":        unsafe.Offsetof(a.lengths_at),
		"hf_args.pieces":            unsafe.Offsetof(a.pieces),
		"hf_args.world":             unsafe.Offsetof(a.world),
		"hf_args.clock":             unsafe.Offsetof(a.clock),
		"hf_args.back":              unsafe.Offsetof(a.back),
	}
	layout := map[string]uint64{
		"HF_RING":            C.HF_RING,
		"HF_WINDOWS":         C.HF_WINDOWS,
		"HF_LINE":            C.HF_LINE,
		"HF_REASON_SHIFT":    C.HF_REASON_SHIFT,
		"HF_FAILED":          C.HF_FAILED,
		"HF_SEQUENCE":        C.HF_SEQUENCE,
		"HF_REASON_CALL":     C.HF_REASON_CALL,
		"HF_REASON_ABORT":    C.HF_REASON_ABORT,
		"HF_REASON_TIMEOUT":  C.HF_REASON_TIMEOUT,
		"HF_REASON_RELEASED": C.HF_REASON_RELEASED,
	}
	for name, at := range offsets {
		layout[name] = uint64(at)
	}
	return layout
}
