//go:build cgo && linux && !noverbs

package driver

// #cgo noescape verbsshim_alloc_pd
// #cgo nocallback verbsshim_alloc_pd
// #cgo noescape verbsshim_dealloc_pd
// #cgo nocallback verbsshim_dealloc_pd
// #cgo noescape verbsshim_reg_mr
// #cgo nocallback verbsshim_reg_mr
// #cgo noescape verbsshim_reg_dmabuf_mr
// #cgo nocallback verbsshim_reg_dmabuf_mr
// #cgo noescape verbsshim_dereg_mr
// #cgo nocallback verbsshim_dereg_mr
// #cgo noescape verbsshim_create_channel
// #cgo nocallback verbsshim_create_channel
// #cgo noescape verbsshim_destroy_channel
// #cgo nocallback verbsshim_destroy_channel
// #cgo noescape verbsshim_cq_event
// #cgo nocallback verbsshim_cq_event
// #cgo noescape verbsshim_create_cq
// #cgo nocallback verbsshim_create_cq
// #cgo noescape verbsshim_destroy_cq
// #cgo nocallback verbsshim_destroy_cq
// #cgo noescape verbsshim_arm
// #cgo nocallback verbsshim_arm
// #cgo noescape verbsshim_poll
// #cgo nocallback verbsshim_poll
// #cgo noescape verbsshim_create_qp
// #cgo nocallback verbsshim_create_qp
// #cgo noescape verbsshim_modify_qp
// #cgo nocallback verbsshim_modify_qp
// #cgo noescape verbsshim_query_qp
// #cgo nocallback verbsshim_query_qp
// #cgo noescape verbsshim_destroy_qp
// #cgo nocallback verbsshim_destroy_qp
// #cgo noescape verbsshim_data_in_order
// #cgo nocallback verbsshim_data_in_order
// #cgo noescape verbsshim_post_send
// #cgo nocallback verbsshim_post_send
// #cgo noescape verbsshim_post_recv
// #cgo nocallback verbsshim_post_recv
// #include "verbsshim.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// These cross as they lie in memory: a pair fails to compile where the sizes differ.
const (
	_ = unsafe.Sizeof(Port{}) - C.sizeof_struct_verbsshim_port
	_ = C.sizeof_struct_verbsshim_port - unsafe.Sizeof(Port{})
	_ = unsafe.Sizeof(QPAttr{}) - C.sizeof_struct_verbsshim_qp_attr
	_ = C.sizeof_struct_verbsshim_qp_attr - unsafe.Sizeof(QPAttr{})
	_ = unsafe.Sizeof(SGE{}) - C.sizeof_struct_verbsshim_sge
	_ = C.sizeof_struct_verbsshim_sge - unsafe.Sizeof(SGE{})
	_ = unsafe.Sizeof(SendWR{}) - C.sizeof_struct_verbsshim_send
	_ = C.sizeof_struct_verbsshim_send - unsafe.Sizeof(SendWR{})
	_ = unsafe.Sizeof(RecvWR{}) - C.sizeof_struct_verbsshim_recv
	_ = C.sizeof_struct_verbsshim_recv - unsafe.Sizeof(RecvWR{})
	_ = unsafe.Sizeof(WC{}) - C.sizeof_struct_verbsshim_wc
	_ = C.sizeof_struct_verbsshim_wc - unsafe.Sizeof(WC{})
)

// AllocPD is ibv_alloc_pd.
func (l *Library) AllocPD(context uintptr) (uintptr, syscall.Errno) {
	var pd C.uintptr_t
	e := C.verbsshim_alloc_pd(l.c, C.uintptr_t(context), &pd)
	return uintptr(pd), syscall.Errno(e)
}

// FreePD is ibv_dealloc_pd.
func (l *Library) FreePD(pd uintptr) syscall.Errno {
	return syscall.Errno(C.verbsshim_dealloc_pd(l.c, C.uintptr_t(pd)))
}

// Register is ibv_reg_mr, or ibv_reg_mr_iova2 where access has bits that a device may ignore.
func (l *Library) Register(pd, addr uintptr, bytes int, access uint32) (MR, syscall.Errno) {
	var m C.struct_verbsshim_mr
	e := C.verbsshim_reg_mr(l.c, C.uintptr_t(pd), C.uintptr_t(addr), C.size_t(bytes), C.uint32_t(access), &m)
	return MR{uintptr(m.handle), uint32(m.lkey), uint32(m.rkey)}, syscall.Errno(e)
}

// RegisterDMABuf is ibv_reg_dmabuf_mr.
func (l *Library) RegisterDMABuf(pd uintptr, fd int, offset uint64, bytes int, iova uint64, access uint32) (MR, syscall.Errno) {
	var m C.struct_verbsshim_mr
	e := C.verbsshim_reg_dmabuf_mr(l.c, C.uintptr_t(pd), C.int(fd), C.uint64_t(offset), C.size_t(bytes), C.uint64_t(iova), C.uint32_t(access), &m)
	return MR{uintptr(m.handle), uint32(m.lkey), uint32(m.rkey)}, syscall.Errno(e)
}

// Deregister is ibv_dereg_mr.
func (l *Library) Deregister(mr uintptr) syscall.Errno {
	return syscall.Errno(C.verbsshim_dereg_mr(l.c, C.uintptr_t(mr)))
}

// CreateChannel is ibv_create_comp_channel.
func (l *Library) CreateChannel(context uintptr) (channel uintptr, fd int, e syscall.Errno) {
	var c C.uintptr_t
	var f C.int
	code := C.verbsshim_create_channel(l.c, C.uintptr_t(context), &c, &f)
	return uintptr(c), int(f), syscall.Errno(code)
}

// DestroyChannel is ibv_destroy_comp_channel.
func (l *Library) DestroyChannel(channel uintptr) syscall.Errno {
	return syscall.Errno(C.verbsshim_destroy_channel(l.c, C.uintptr_t(channel)))
}

// CQEvent is ibv_get_cq_event and ibv_ack_cq_events.
func (l *Library) CQEvent(channel uintptr) (uintptr, syscall.Errno) {
	var cq C.uintptr_t
	e := C.verbsshim_cq_event(l.c, C.uintptr_t(channel), &cq)
	return uintptr(cq), syscall.Errno(e)
}

// CreateCQ is ibv_create_cq.
func (l *Library) CreateCQ(context uintptr, entries int, channel uintptr, vector int) (cq uintptr, capacity int, e syscall.Errno) {
	var q C.uintptr_t
	var got C.int
	code := C.verbsshim_create_cq(l.c, C.uintptr_t(context), C.int(entries), C.uintptr_t(channel), C.int(vector), &q, &got)
	return uintptr(q), int(got), syscall.Errno(code)
}

// DestroyCQ is ibv_destroy_cq.
func (l *Library) DestroyCQ(cq uintptr) syscall.Errno {
	return syscall.Errno(C.verbsshim_destroy_cq(l.c, C.uintptr_t(cq)))
}

// Arm is ibv_req_notify_cq.
func (l *Library) Arm(cq uintptr, solicited bool) syscall.Errno {
	return syscall.Errno(C.verbsshim_arm(C.uintptr_t(cq), truth(solicited)))
}

// Poll is ibv_poll_cq.
func (l *Library) Poll(cq uintptr, wc []WC) (int, syscall.Errno) {
	var n C.int
	e := C.verbsshim_poll(C.uintptr_t(cq), (*C.struct_verbsshim_wc)(unsafe.Pointer(unsafe.SliceData(wc))), C.int(len(wc)), &n)
	return int(n), syscall.Errno(e)
}

// CreateQP is ibv_create_qp.
func (l *Library) CreateQP(pd uintptr, c QPConfig) (QP, syscall.Errno) {
	limits := C.struct_verbsshim_cap{
		send_wrs: C.uint32_t(c.SendWRs), recv_wrs: C.uint32_t(c.RecvWRs), send_sges: C.uint32_t(c.SendSGEs),
		recv_sges: C.uint32_t(c.RecvSGEs), inline_bytes: C.uint32_t(c.Inline),
	}
	var qp C.uintptr_t
	var number C.uint32_t
	e := C.verbsshim_create_qp(l.c, C.uintptr_t(pd), C.uintptr_t(c.SendCQ), C.uintptr_t(c.RecvCQ), truth(c.SignalAll), &limits, &qp, &number)
	return QP{
		Handle: uintptr(qp), Number: uint32(number), SendWRs: uint32(limits.send_wrs), RecvWRs: uint32(limits.recv_wrs),
		SendSGEs: uint32(limits.send_sges), RecvSGEs: uint32(limits.recv_sges), Inline: uint32(limits.inline_bytes),
	}, syscall.Errno(e)
}

// ModifyQP is ibv_modify_qp.
func (l *Library) ModifyQP(qp uintptr, a *QPAttr, mask uint32) syscall.Errno {
	return syscall.Errno(C.verbsshim_modify_qp(l.c, C.uintptr_t(qp), (*C.struct_verbsshim_qp_attr)(unsafe.Pointer(a)), C.uint32_t(mask)))
}

// QueryQP is ibv_query_qp.
func (l *Library) QueryQP(qp uintptr, mask uint32) (QPAttr, syscall.Errno) {
	var a QPAttr
	e := C.verbsshim_query_qp(l.c, C.uintptr_t(qp), C.uint32_t(mask), (*C.struct_verbsshim_qp_attr)(unsafe.Pointer(&a)))
	return a, syscall.Errno(e)
}

// DestroyQP is ibv_destroy_qp.
func (l *Library) DestroyQP(qp uintptr) syscall.Errno {
	return syscall.Errno(C.verbsshim_destroy_qp(l.c, C.uintptr_t(qp)))
}

// DataInOrder is ibv_query_qp_data_in_order.
func (l *Library) DataInOrder(qp uintptr, op uint32) (bool, syscall.Errno) {
	var in C.int
	e := C.verbsshim_data_in_order(l.c, C.uintptr_t(qp), C.uint32_t(op), &in)
	return in != 0, syscall.Errno(e)
}

// PostSend is ibv_post_send.
func (l *Library) PostSend(qp uintptr, wr []SendWR, sge []SGE) (int, syscall.Errno) {
	var posted C.int
	e := C.verbsshim_post_send(C.uintptr_t(qp), (*C.struct_verbsshim_send)(unsafe.Pointer(unsafe.SliceData(wr))), C.int(len(wr)),
		(*C.struct_verbsshim_sge)(unsafe.Pointer(unsafe.SliceData(sge))), &posted)
	return int(posted), syscall.Errno(e)
}

// PostRecv is ibv_post_recv.
func (l *Library) PostRecv(qp uintptr, wr []RecvWR, sge []SGE) (int, syscall.Errno) {
	var posted C.int
	e := C.verbsshim_post_recv(C.uintptr_t(qp), (*C.struct_verbsshim_recv)(unsafe.Pointer(unsafe.SliceData(wr))), C.int(len(wr)),
		(*C.struct_verbsshim_sge)(unsafe.Pointer(unsafe.SliceData(sge))), &posted)
	return int(posted), syscall.Errno(e)
}

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
