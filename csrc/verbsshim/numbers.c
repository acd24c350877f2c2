//go:build cgo && linux && !noverbs

// The numbers and layouts that Go relies on, against the header.
#include "table.h"

#define IS(name, value) _Static_assert((name) == (value), #name)
#define SAME(ours, field, theirs, other) \
  _Static_assert(offsetof(struct ours, field) == offsetof(struct theirs, other), #theirs "." #other)

SAME(verbsshim_sge, addr, ibv_sge, addr);
SAME(verbsshim_sge, length, ibv_sge, length);
SAME(verbsshim_sge, lkey, ibv_sge, lkey);
_Static_assert(sizeof(struct verbsshim_sge) == sizeof(struct ibv_sge), "ibv_sge");
_Static_assert(sizeof(struct verbsshim_gid) == 32, "ibv_gid_entry");

IS(IBV_QPS_RESET, 0);
IS(IBV_QPS_INIT, 1);
IS(IBV_QPS_RTR, 2);
IS(IBV_QPS_RTS, 3);
IS(IBV_QPS_SQD, 4);
IS(IBV_QPS_SQE, 5);
IS(IBV_QPS_ERR, 6);
IS(IBV_WR_RDMA_WRITE, 0);
IS(IBV_WR_RDMA_WRITE_WITH_IMM, 1);
IS(IBV_WR_SEND, 2);
IS(IBV_WR_SEND_WITH_IMM, 3);
IS(IBV_WR_RDMA_READ, 4);
IS(IBV_SEND_FENCE, 1);
IS(IBV_SEND_SIGNALED, 2);
IS(IBV_SEND_SOLICITED, 4);
IS(IBV_SEND_INLINE, 8);
IS(IBV_ACCESS_LOCAL_WRITE, 1);
IS(IBV_ACCESS_REMOTE_WRITE, 2);
IS(IBV_ACCESS_REMOTE_READ, 4);
IS(IBV_ACCESS_REMOTE_ATOMIC, 8);
IS(IBV_ACCESS_RELAXED_ORDERING, 1 << 20);
IS(IBV_WC_SEND, 0);
IS(IBV_WC_RDMA_WRITE, 1);
IS(IBV_WC_RDMA_READ, 2);
IS(IBV_WC_RECV, 128);
IS(IBV_WC_RECV_RDMA_WITH_IMM, 129);
IS(IBV_WC_WITH_IMM, 2);
IS(IBV_WC_WR_FLUSH_ERR, 5);
IS(IBV_WC_RETRY_EXC_ERR, 12);
IS(IBV_WC_RNR_RETRY_EXC_ERR, 13);
IS(IBV_WC_GENERAL_ERR, 21);
IS(IBV_MTU_256, 1);
IS(IBV_MTU_4096, 5);
IS(IBV_PORT_DOWN, 1);
IS(IBV_PORT_ACTIVE, 4);
IS(IBV_LINK_LAYER_INFINIBAND, 1);
IS(IBV_LINK_LAYER_ETHERNET, 2);
IS(IBV_EVENT_CQ_ERR, 0);
IS(IBV_EVENT_DEVICE_FATAL, 8);
IS(IBV_EVENT_PORT_ACTIVE, 9);
IS(IBV_EVENT_PORT_ERR, 10);
IS(IBV_EVENT_GID_CHANGE, 18);
IS(IBV_EVENT_WQ_FATAL, 19);
IS(IBV_QP_STATE, 1 << 0);
IS(IBV_QP_ACCESS_FLAGS, 1 << 3);
IS(IBV_QP_PKEY_INDEX, 1 << 4);
IS(IBV_QP_PORT, 1 << 5);
IS(IBV_QP_AV, 1 << 7);
IS(IBV_QP_PATH_MTU, 1 << 8);
IS(IBV_QP_TIMEOUT, 1 << 9);
IS(IBV_QP_RETRY_CNT, 1 << 10);
IS(IBV_QP_RNR_RETRY, 1 << 11);
IS(IBV_QP_RQ_PSN, 1 << 12);
IS(IBV_QP_MAX_QP_RD_ATOMIC, 1 << 13);
IS(IBV_QP_MIN_RNR_TIMER, 1 << 15);
IS(IBV_QP_SQ_PSN, 1 << 16);
IS(IBV_QP_MAX_DEST_RD_ATOMIC, 1 << 17);
IS(IBV_QP_DEST_QPN, 1 << 20);
