//go:build cgo && linux

package twin

// #define HF_HOST_BUILD
// #include "region.h"
import "C"

import "unsafe"

// Gather runs the gather kernel on the calling thread, and returns when the launch has ended. args is a struct hf_call whose
// addresses are not Go's.
func Gather(args []byte, blocks, threads int) {
	C.hf_gather__host(unsafe.Pointer(unsafe.SliceData(args)), C.uint(blocks), C.uint(threads))
}

// AllReduce is Gather for the all-reduce kernel.
func AllReduce(args []byte, blocks, threads int) {
	C.hf_all_reduce__host(unsafe.Pointer(unsafe.SliceData(args)), C.uint(blocks), C.uint(threads))
}

// Exchange is Gather for the exchange kernel.
func Exchange(args []byte, blocks, threads int) {
	C.hf_exchange__host(unsafe.Pointer(unsafe.SliceData(args)), C.uint(blocks), C.uint(threads))
}

// RegionLayout is Layout for region.h.
func RegionLayout() map[string]uint64 {
	var t C.struct_hf_target
	var m C.struct_hf_mailbox
	var d C.struct_hf_doorbell
	var f C.struct_hf_record
	var r C.struct_hf_region
	var c C.struct_hf_call
	layout := map[string]uint64{
		"HF_RANKS": C.HF_RANKS, "HF_SLOTS": C.HF_SLOTS, "HF_STRIPES": C.HF_STRIPES, "HF_PACK": C.HF_PACK,
		"HF_GROUP": C.HF_GROUP, "HF_PAIR": C.HF_PAIR, "HF_CLASSES": C.HF_CLASSES,
		"HF_FLAG_SHIFT": C.HF_FLAG_SHIFT, "HF_FLAG_EPOCH": C.HF_FLAG_EPOCH,
		"HF_CAUSE_ABORT": C.HF_CAUSE_ABORT, "HF_CAUSE_TIMEOUT": C.HF_CAUSE_TIMEOUT, "HF_CAUSE_DESYNC": C.HF_CAUSE_DESYNC,
		"HF_F16": C.HF_F16, "HF_BF16": C.HF_BF16, "HF_F32": C.HF_F32,
		"HF_SUM": C.HF_SUM, "HF_PROD": C.HF_PROD, "HF_MAX": C.HF_MAX, "HF_MIN": C.HF_MIN, "HF_AVG": C.HF_AVG,
	}
	for name, at := range map[string]uintptr{
		"hf_target":              unsafe.Sizeof(t),
		"hf_target.epoch":        unsafe.Offsetof(t.epoch),
		"hf_target.staged":       unsafe.Offsetof(t.staged),
		"hf_target.left":         unsafe.Offsetof(t.left),
		"hf_mailbox":             unsafe.Sizeof(m),
		"hf_mailbox.poison":      unsafe.Offsetof(m.poison),
		"hf_mailbox.target":      unsafe.Offsetof(m.target),
		"hf_doorbell":            unsafe.Sizeof(d),
		"hf_doorbell.epoch":      unsafe.Offsetof(d.epoch),
		"hf_doorbell.bytes":      unsafe.Offsetof(d.bytes),
		"hf_doorbell.flag":       unsafe.Offsetof(d.flag),
		"hf_doorbell.ended":      unsafe.Offsetof(d.ended),
		"hf_record":              unsafe.Sizeof(f),
		"hf_record.failed":       unsafe.Offsetof(f.failed),
		"hf_record.target":       unsafe.Offsetof(f.target),
		"hf_record.peer":         unsafe.Offsetof(f.peer),
		"hf_record.stripe":       unsafe.Offsetof(f.stripe),
		"hf_record.seen":         unsafe.Offsetof(f.seen),
		"hf_record.awaited":      unsafe.Offsetof(f.awaited),
		"hf_record.microseconds": unsafe.Offsetof(f.microseconds),
		"hf_region":              unsafe.Sizeof(r),
		"hf_region.doorbell":     unsafe.Offsetof(r.doorbell),
		"hf_region.record":       unsafe.Offsetof(r.record),
		"hf_region.abort":        unsafe.Offsetof(r.abort),
		"hf_region.flag":         unsafe.Offsetof(r.flag),
		"hf_call":                unsafe.Sizeof(c),
		"hf_call.mailbox":        unsafe.Offsetof(c.mailbox),
		"hf_call.region":         unsafe.Offsetof(c.region),
		"hf_call.in":             unsafe.Offsetof(c.in),
		"hf_call.out":            unsafe.Offsetof(c.out),
		"hf_call.bytes":          unsafe.Offsetof(c.bytes),
		"hf_call.slot_bytes":     unsafe.Offsetof(c.slot_bytes),
		"hf_call.timeout":        unsafe.Offsetof(c.timeout),
		"hf_call.world":          unsafe.Offsetof(c.world),
		"hf_call.rank":           unsafe.Offsetof(c.rank),
		"hf_call.target":         unsafe.Offsetof(c.target),
		"hf_call.stripes":        unsafe.Offsetof(c.stripes),
		"hf_call.dtype":          unsafe.Offsetof(c.dtype),
		"hf_call.reduce":         unsafe.Offsetof(c.reduce),
		"hf_call.tag":            unsafe.Offsetof(c.tag),
		"hf_call.clock":          unsafe.Offsetof(c.clock),
	} {
		layout[name] = uint64(at)
	}
	return layout
}
