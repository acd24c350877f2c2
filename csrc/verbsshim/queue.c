//go:build cgo && linux && !noverbs

#include "table.h"

#include <endian.h>
#include <string.h>

// Requests and completions that go through the stack at a time: a longer chain is still one crossing from Go.
enum { BATCH = 32 };

int verbsshim_create_cq(const struct verbsshim *t, uintptr_t context, int entries, uintptr_t channel, int vector, uintptr_t *cq, int *capacity) {
  errno = 0;
  struct ibv_cq *c = t->ibv_create_cq((struct ibv_context *)context, entries, NULL, (struct ibv_comp_channel *)channel, vector);
  if (!c) return absent();
  *cq = (uintptr_t)c;
  *capacity = c->cqe;
  return 0;
}

int verbsshim_destroy_cq(const struct verbsshim *t, uintptr_t cq) {
  errno = 0;
  return fault(t->ibv_destroy_cq((struct ibv_cq *)cq));
}

int verbsshim_arm(uintptr_t cq, int solicited) {
  errno = 0;
  return fault(ibv_req_notify_cq((struct ibv_cq *)cq, solicited));
}

int verbsshim_poll(uintptr_t cq, struct verbsshim_wc *out, int max, int *count) {
  struct ibv_wc wc[BATCH];
  *count = 0;
  while (*count < max) {
    int want = max - *count < BATCH ? max - *count : BATCH;
    errno = 0;
    int n = ibv_poll_cq((struct ibv_cq *)cq, want, wc);
    if (n < 0) return fault(n);
    for (int i = 0; i < n; i++, out++) {
      out->id = wc[i].wr_id;
      out->status = wc[i].status;
      out->op = wc[i].opcode;
      out->vendor_err = wc[i].vendor_err;
      out->bytes = wc[i].byte_len;
      out->imm = be32toh(wc[i].imm_data);
      out->qpn = wc[i].qp_num;
      out->src_qp = wc[i].src_qp;
      out->flags = wc[i].wc_flags;
    }
    *count += n;
    if (n < want) break;
  }
  return 0;
}

int verbsshim_create_qp(const struct verbsshim *t, uintptr_t pd, uintptr_t send_cq, uintptr_t recv_cq, int signal_all, struct verbsshim_cap *cap,
                        uintptr_t *qp, uint32_t *number) {
  struct ibv_qp_init_attr a;
  memset(&a, 0, sizeof a);
  a.qp_type = IBV_QPT_RC;
  a.send_cq = (struct ibv_cq *)send_cq;
  a.recv_cq = (struct ibv_cq *)recv_cq;
  a.sq_sig_all = signal_all;
  a.cap.max_send_wr = cap->send_wrs;
  a.cap.max_recv_wr = cap->recv_wrs;
  a.cap.max_send_sge = cap->send_sges;
  a.cap.max_recv_sge = cap->recv_sges;
  a.cap.max_inline_data = cap->inline_bytes;
  errno = 0;
  struct ibv_qp *q = t->ibv_create_qp((struct ibv_pd *)pd, &a);
  if (!q) return absent();
  cap->send_wrs = a.cap.max_send_wr;
  cap->recv_wrs = a.cap.max_recv_wr;
  cap->send_sges = a.cap.max_send_sge;
  cap->recv_sges = a.cap.max_recv_sge;
  cap->inline_bytes = a.cap.max_inline_data;
  *qp = (uintptr_t)q;
  *number = q->qp_num;
  return 0;
}

int verbsshim_modify_qp(const struct verbsshim *t, uintptr_t qp, const struct verbsshim_qp_attr *attr, uint32_t mask) {
  struct ibv_qp_attr a;
  memset(&a, 0, sizeof a);
  a.qp_state = attr->state;
  a.path_mtu = attr->mtu;
  a.qp_access_flags = attr->access;
  a.pkey_index = (uint16_t)attr->pkey_index;
  a.port_num = (uint8_t)attr->port;
  a.dest_qp_num = attr->dest_qpn;
  a.rq_psn = attr->rq_psn;
  a.sq_psn = attr->sq_psn;
  a.max_rd_atomic = (uint8_t)attr->max_reads_out;
  a.max_dest_rd_atomic = (uint8_t)attr->max_reads_in;
  a.min_rnr_timer = (uint8_t)attr->min_rnr_timer;
  a.timeout = (uint8_t)attr->timeout;
  a.retry_cnt = (uint8_t)attr->retry_count;
  a.rnr_retry = (uint8_t)attr->rnr_retry;
  a.ah_attr.port_num = (uint8_t)attr->port;
  a.ah_attr.is_global = attr->global != 0;
  a.ah_attr.dlid = (uint16_t)attr->dlid;
  a.ah_attr.sl = (uint8_t)attr->sl;
  a.ah_attr.grh.sgid_index = (uint8_t)attr->sgid_index;
  a.ah_attr.grh.hop_limit = (uint8_t)attr->hop_limit;
  a.ah_attr.grh.traffic_class = (uint8_t)attr->traffic_class;
  a.ah_attr.grh.flow_label = attr->flow_label;
  memcpy(a.ah_attr.grh.dgid.raw, attr->gid, sizeof attr->gid);
  errno = 0;
  return fault(t->ibv_modify_qp((struct ibv_qp *)qp, &a, (int)mask));
}

int verbsshim_query_qp(const struct verbsshim *t, uintptr_t qp, uint32_t mask, struct verbsshim_qp_attr *attr) {
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr init;
  memset(&a, 0, sizeof a);
  memset(&init, 0, sizeof init);
  errno = 0;
  int e = fault(t->ibv_query_qp((struct ibv_qp *)qp, &a, (int)mask, &init));
  if (e) return e;
  attr->state = a.qp_state;
  attr->mtu = a.path_mtu;
  attr->access = a.qp_access_flags;
  attr->pkey_index = a.pkey_index;
  attr->port = a.port_num;
  attr->dest_qpn = a.dest_qp_num;
  attr->rq_psn = a.rq_psn;
  attr->sq_psn = a.sq_psn;
  attr->max_reads_out = a.max_rd_atomic;
  attr->max_reads_in = a.max_dest_rd_atomic;
  attr->min_rnr_timer = a.min_rnr_timer;
  attr->timeout = a.timeout;
  attr->retry_count = a.retry_cnt;
  attr->rnr_retry = a.rnr_retry;
  attr->global = a.ah_attr.is_global;
  attr->dlid = a.ah_attr.dlid;
  attr->sl = a.ah_attr.sl;
  attr->sgid_index = a.ah_attr.grh.sgid_index;
  attr->hop_limit = a.ah_attr.grh.hop_limit;
  attr->traffic_class = a.ah_attr.grh.traffic_class;
  attr->flow_label = a.ah_attr.grh.flow_label;
  memcpy(attr->gid, a.ah_attr.grh.dgid.raw, sizeof attr->gid);
  return 0;
}

int verbsshim_destroy_qp(const struct verbsshim *t, uintptr_t qp) {
  errno = 0;
  return fault(t->ibv_destroy_qp((struct ibv_qp *)qp));
}

int verbsshim_data_in_order(const struct verbsshim *t, uintptr_t qp, uint32_t op, int *in_order) {
  if (!t->ibv_query_qp_data_in_order) return ENOSYS;
  *in_order = t->ibv_query_qp_data_in_order((struct ibv_qp *)qp, (enum ibv_wr_opcode)op, 0) != 0;
  return 0;
}

int verbsshim_post_send(uintptr_t qp, const struct verbsshim_send *w, int n, const struct verbsshim_sge *sge, int *posted) {
  struct ibv_send_wr wr[BATCH];
  *posted = 0;
  while (n > 0) {
    int k = n < BATCH ? n : BATCH;
    for (int i = 0; i < k; i++, w++) {
      wr[i].wr_id = w->id;
      wr[i].next = i + 1 < k ? &wr[i + 1] : NULL;
      wr[i].sg_list = (struct ibv_sge *)sge;
      wr[i].num_sge = (int)w->sges;
      wr[i].opcode = (enum ibv_wr_opcode)w->op;
      wr[i].send_flags = w->flags;
      wr[i].imm_data = htobe32(w->imm);
      wr[i].wr.rdma.remote_addr = w->remote_addr;
      wr[i].wr.rdma.rkey = w->rkey;
      sge += w->sges;
    }
    struct ibv_send_wr *bad = NULL;
    errno = 0;
    int e = fault(ibv_post_send((struct ibv_qp *)qp, wr, &bad));
    if (e) {
      if (bad) *posted += (int)(bad - wr);
      return e;
    }
    *posted += k;
    n -= k;
  }
  return 0;
}

int verbsshim_post_recv(uintptr_t qp, const struct verbsshim_recv *w, int n, const struct verbsshim_sge *sge, int *posted) {
  struct ibv_recv_wr wr[BATCH];
  *posted = 0;
  while (n > 0) {
    int k = n < BATCH ? n : BATCH;
    for (int i = 0; i < k; i++, w++) {
      wr[i].wr_id = w->id;
      wr[i].next = i + 1 < k ? &wr[i + 1] : NULL;
      wr[i].sg_list = (struct ibv_sge *)sge;
      wr[i].num_sge = (int)w->sges;
      sge += w->sges;
    }
    struct ibv_recv_wr *bad = NULL;
    errno = 0;
    int e = fault(ibv_post_recv((struct ibv_qp *)qp, wr, &bad));
    if (e) {
      if (bad) *posted += (int)(bad - wr);
      return e;
    }
    *posted += k;
    n -= k;
  }
  return 0;
}
