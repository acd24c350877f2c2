//go:build cgo && linux && rxevm

package bare

// #cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -I${SRCDIR}/../../../../csrc/verbsshim
// #include "table.h"
//
// // A payload, then its flag, inline; the last flag completes.
// static int bare_chains(uintptr_t qp, int n, struct ibv_sge payload, struct ibv_sge flag, uint64_t remote, uint64_t remote_flag, uint32_t rkey) {
//   for (int i = 0; i < n; i++) {
//     struct ibv_send_wr wr[2] = {
//       {.next = &wr[1], .sg_list = &payload, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {remote, rkey}},
//       {.sg_list = &flag, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE, .wr.rdma = {remote_flag, rkey}},
//     };
//     if (i == n - 1) wr[1].send_flags |= IBV_SEND_SIGNALED;
//     struct ibv_send_wr *bad;
//     int e = ibv_post_send((struct ibv_qp *)qp, wr, &bad);
//     if (e) return e;
//   }
//   return 0;
// }
import "C"

import (
	"syscall"

	_ "github.com/hipfabric/hipfabric/csrc/verbsshim" // its header
)

// SGE is ibv_sge.
type SGE struct {
	Addr         uint64
	Length, LKey uint32
}

// Chains posts n chains of a payload's write and its flag's.
func Chains(qp uintptr, n int, payload, flag SGE, remote, remoteFlag uint64, rkey uint32) error {
	entry := func(s SGE) C.struct_ibv_sge {
		return C.struct_ibv_sge{addr: C.uint64_t(s.Addr), length: C.uint32_t(s.Length), lkey: C.uint32_t(s.LKey)}
	}
	if e := C.bare_chains(C.uintptr_t(qp), C.int(n), entry(payload), entry(flag), C.uint64_t(remote), C.uint64_t(remoteFlag), C.uint32_t(rkey)); e != 0 {
		return syscall.Errno(e)
	}
	return nil
}
