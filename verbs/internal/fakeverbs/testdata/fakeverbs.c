// A libibverbs.so.1 for tests: HCAs fake0 and so on, whose queue pairs are connected to themselves. Built by package fakeverbs.
//
// fake1 may not be opened. Registering more than 1 GiB is out of memory. The key 0xbad is refused by the peer. Asking for slot 7
// of the P_Key table makes port 1 fail, which is an event; moving a queue pair to ERR is one too. After slot 8 the GID table is said to be longer than any, after slot 9 to have
// more than there was room for.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova2

struct context {
  struct ibv_context c;
  int async_write, objects;
};

struct channel {
  struct ibv_comp_channel c;
  int write, cqs;
};

struct cq {
  struct ibv_cq c;
  int armed, qps, head, count; // armed: 1 any, 2 solicited
  struct ibv_wc wc[256];
};

struct qp {
  struct ibv_qp q;
  struct ibv_qp_attr attr;
  struct ibv_qp_cap cap;
  int all, recvs;
  struct ibv_recv_wr recv[64];
  struct ibv_sge recv_sge[64][4];
};

struct pd {
  struct ibv_pd p;
  int objects;
};

static void *zero(size_t n) {
  void *p = calloc(1, n);
  if (!p) abort();
  return p;
}

struct ibv_device **ibv_get_device_list(int *n) {
  *n = DEVICES;
  if (DEVICES == 0) {
    errno = ENOSYS;
    return NULL;
  }
  struct ibv_device **list = zero((DEVICES + 1) * sizeof *list);
  for (int i = 0; i < DEVICES; i++) {
    list[i] = zero(sizeof **list);
    list[i]->node_type = IBV_NODE_CA;
    snprintf(list[i]->name, sizeof list[i]->name, "fake%d", i);
    snprintf(list[i]->dev_name, sizeof list[i]->dev_name, "uverbs%d", i);
  }
  return list;
}

static struct ibv_device opened = {.name = "fake0"};

void ibv_free_device_list(struct ibv_device **list) {
  for (int i = 0; i < DEVICES; i++) free(list[i]);
  free(list);
}

const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }
__be64 ibv_get_device_guid(struct ibv_device *d) { return htobe64(0x0102030405060700 + (uint64_t)atoi(d->name + 4)); }
int ibv_get_device_index(struct ibv_device *d) { return 40 + atoi(d->name + 4); }

static int poll_cq(struct ibv_cq *c, int n, struct ibv_wc *out) {
  struct cq *q = (struct cq *)c;
  int i = 0;
  for (; i < n && q->count > 0; i++, q->count--) out[i] = q->wc[q->head++ % 256];
  return i;
}

static int req_notify_cq(struct ibv_cq *c, int solicited) {
  ((struct cq *)c)->armed = 1 + solicited;
  return 0;
}

static void complete(struct ibv_cq *c, struct ibv_wc wc, int solicited) {
  struct cq *q = (struct cq *)c;
  if (q->count == 256) return;
  q->wc[(q->head + q->count++) % 256] = wc;
  if (!c->channel || q->armed == 0 || (q->armed == 2 && !solicited && !wc.status)) return;
  q->armed = 0;
  if (write(((struct channel *)c->channel)->write, &c, sizeof c) < 0) abort();
}

// carry runs one request, to the queue pair itself.
static enum ibv_wc_status carry(struct qp *q, struct ibv_send_wr *wr) {
  char buffer[8192], *at = buffer;
  if (q->attr.qp_state == IBV_QPS_ERR) return IBV_WC_WR_FLUSH_ERR;
  if (wr->wr.rdma.rkey == 0xbad) return IBV_WC_REM_ACCESS_ERR;
  char *remote = (char *)(uintptr_t)wr->wr.rdma.remote_addr;
  for (int i = 0; i < wr->num_sge; i++) {
    char *local = (char *)(uintptr_t)wr->sg_list[i].addr;
    uint32_t n = wr->sg_list[i].length;
    if (wr->opcode == IBV_WR_RDMA_READ) {
      memcpy(local, remote, n);
      remote += n;
    } else if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      memcpy(remote, local, n);
      remote += n;
    } else {
      memcpy(at, local, n);
      at += n;
    }
  }
  if (wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_RDMA_WRITE) return IBV_WC_SUCCESS;
  if (q->recvs == 0) return IBV_WC_RNR_RETRY_EXC_ERR;
  struct ibv_wc wc = {.wr_id = q->recv[0].wr_id, .qp_num = q->q.qp_num, .src_qp = q->q.qp_num, .opcode = IBV_WC_RECV, .byte_len = at - buffer};
  if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  if (wr->opcode != IBV_WR_SEND) {
    wc.imm_data = wr->imm_data;
    wc.wc_flags = IBV_WC_WITH_IMM;
  }
  char *from = buffer;
  for (int i = 0; i < q->recv[0].num_sge && from < at; i++) {
    uint32_t n = q->recv_sge[0][i].length;
    if (n > at - from) n = at - from;
    memcpy((char *)(uintptr_t)q->recv_sge[0][i].addr, from, n);
    from += n;
  }
  q->recvs--;
  memmove(q->recv, q->recv + 1, q->recvs * sizeof *q->recv);
  memmove(q->recv_sge, q->recv_sge + 1, q->recvs * sizeof *q->recv_sge);
  complete(q->q.recv_cq, wc, wr->send_flags & IBV_SEND_SOLICITED);
  return IBV_WC_SUCCESS;
}

static void flush(struct qp *q) {
  q->attr.qp_state = IBV_QPS_ERR;
  for (int i = 0; i < q->recvs; i++)
    complete(q->q.recv_cq, (struct ibv_wc){.wr_id = q->recv[i].wr_id, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = q->q.qp_num}, 0);
  q->recvs = 0;
}

static int post_send(struct ibv_qp *p, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct qp *q = (struct qp *)p;
  for (; wr; wr = wr->next) {
    *bad = wr;
    if (q->attr.qp_state != IBV_QPS_RTS && q->attr.qp_state != IBV_QPS_ERR) return EINVAL;
    if ((uint32_t)wr->num_sge > q->cap.max_send_sge) {
      errno = EINVAL;
      return -1; // one of the three ways
    }
    struct ibv_wc wc = {.wr_id = wr->wr_id, .status = carry(q, wr), .qp_num = p->qp_num, .vendor_err = 0x51};
    wc.opcode = wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : wr->opcode < IBV_WR_SEND ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
    if (q->all || wc.status || (wr->send_flags & IBV_SEND_SIGNALED)) complete(p->send_cq, wc, 0);
    if (wc.status) flush(q);
  }
  return 0;
}

static int post_recv(struct ibv_qp *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct qp *q = (struct qp *)p;
  for (; wr; wr = wr->next) {
    *bad = wr;
    if (q->recvs == 64) return ENOMEM;
    q->recv[q->recvs] = *wr;
    memcpy(q->recv_sge[q->recvs++], wr->sg_list, wr->num_sge * sizeof(struct ibv_sge));
  }
  return 0;
}

static void pair(int *reading, int *writing) {
  int fd[2];
  if (pipe2(fd, O_CLOEXEC)) abort();
  *reading = fd[0];
  *writing = fd[1];
}

struct ibv_context *ibv_open_device(struct ibv_device *d) {
  if (!strcmp(d->name, "fake1")) {
    errno = EACCES;
    return NULL;
  }
  struct context *c = zero(sizeof *c);
  c->c.device = &opened;
  c->c.ops.poll_cq = poll_cq;
  c->c.ops.req_notify_cq = req_notify_cq;
  c->c.ops.post_send = post_send;
  c->c.ops.post_recv = post_recv;
  pair(&c->c.async_fd, &c->async_write);
  return &c->c;
}

int ibv_close_device(struct ibv_context *p) {
  struct context *c = (struct context *)p;
  if (c->objects) abort(); // what a device does not survive
  close(p->async_fd); // as a channel's
  free(c);
  return 0;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a) {
  memset(a, 0, sizeof *a);
  strcpy(a->fw_ver, "1.2.3");
  a->node_guid = htobe64(0x0102030405060700);
  a->max_mr_size = 1ull << 40;
  a->vendor_id = 3;
  a->vendor_part_id = 4;
  a->hw_ver = 5;
  a->max_qp = 6;
  a->max_qp_wr = 1000;
  a->max_sge = 4;
  a->max_cq = 9;
  a->max_cqe = 4096;
  a->max_mr = 11;
  a->max_pd = 12;
  a->max_qp_rd_atom = 13;
  a->max_qp_init_rd_atom = 14;
  a->max_pkeys = 15;
  a->phys_port_cnt = 2;
  return 0;
}

static int gid_slots = 4, gids_found = 3;

int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr) {
  struct ibv_port_attr a = {
    .state = IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096, .active_mtu = IBV_MTU_1024, .gid_tbl_len = gid_slots, .port_cap_flags = 21, .max_msg_sz = 1 << 30,
    .pkey_tbl_len = 1, .lid = 23, .sm_lid = 24, .lmc = 2, .active_width = 2, .active_speed = 32, .phys_state = 5, .link_layer = IBV_LINK_LAYER_ETHERNET,
  };
  if (port != 1 && port != 2) return EINVAL;
  memcpy(attr, &a, 48); // the exported function knows no more
  return 0;
}

static const uint8_t gids[3][16] = {{0xfe, 0x80, [15] = 1}, {[10] = 0xff, 0xff, 10, 0, 0, 7}, {0x20, 1, 0xd, 0xb8, [15] = 9}};

// The second slot is empty, and so is port 2 but for its last.
ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *e, size_t max, uint32_t flags, size_t bytes) {
  if (bytes != 32 || max < 3) {
    errno = EINVAL;
    return -EINVAL;
  }
  for (int i = 0; i < 3; i++) {
    memset(&e[i], 0, sizeof e[i]);
    memcpy(e[i].gid.raw, gids[i], 16);
    e[i].gid_index = i == 0 ? 0 : i + 1;
    e[i].port_num = i == 2 ? 2 : 1;
    e[i].gid_type = i == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    e[i].ndev_ifindex = i == 1; // lo
  }
  return gids_found;
}

int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid) {
  memset(gid, 0, sizeof *gid);
  if (port == 1 && index == 0) memcpy(gid->raw, gids[0], 16);
  return 0;
}

int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey) {
  if (index == 7) {
    struct ibv_async_event e = {.element.port_num = 1, .event_type = IBV_EVENT_PORT_ERR};
    if (write(((struct context *)c)->async_write, &e, sizeof e) < 0) abort();
  }
  if (index == 8) gid_slots = -1;
  if (index == 9) gid_slots = 4, gids_found = 1000;
  if (index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htobe16(0x8001);
  return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c) {
  struct pd *p = zero(sizeof *p);
  p->p.context = c;
  ((struct context *)c)->objects++;
  return &p->p;
}

int ibv_dealloc_pd(struct ibv_pd *p) {
  if (((struct pd *)p)->objects) return EBUSY;
  ((struct context *)p->context)->objects--;
  free(p);
  return 0;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t bytes, uint32_t lkey, uint32_t rkey) {
  if (bytes > 1 << 30) {
    errno = ENOMEM;
    return NULL;
  }
  struct ibv_mr *m = zero(sizeof *m);
  m->pd = pd;
  m->lkey = lkey;
  m->rkey = rkey;
  ((struct pd *)pd)->objects++;
  return m;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t bytes, int access) { return reg(pd, addr, bytes, 0x100, access); }

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access) {
  return reg(pd, addr, bytes, iova == (uintptr_t)addr ? 0x200 : 0, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access) {
  if (offset == 0) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  return reg(pd, NULL, bytes, (uint32_t)(offset << 8 | (uint32_t)fd), (uint32_t)access);
}

int ibv_dereg_mr(struct ibv_mr *m) {
  ((struct pd *)m->pd)->objects--;
  free(m);
  return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c) {
  struct channel *h = zero(sizeof *h);
  h->c.context = c;
  ((struct context *)c)->objects++;
  pair(&h->c.fd, &h->write);
  return &h->c;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *p) {
  struct channel *h = (struct channel *)p;
  if (h->cqs) return EBUSY;
  ((struct context *)p->context)->objects--;
  close(p->fd); // the other end stays, or what waits on a duplicate would see the end of the pipe, which no HCA shows
  free(h);
  return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *context, struct ibv_comp_channel *channel, int vector) {
  if (vector != 0) {
    errno = EINVAL;
    return NULL;
  }
  struct cq *q = zero(sizeof *q);
  q->c.context = c;
  q->c.channel = channel;
  q->c.cqe = cqe + 1;
  if (channel) ((struct channel *)channel)->cqs++;
  ((struct context *)c)->objects++;
  return &q->c;
}

int ibv_destroy_cq(struct ibv_cq *c) {
  if (((struct cq *)c)->qps) return EBUSY;
  if (c->channel) ((struct channel *)c->channel)->cqs--;
  ((struct context *)c->context)->objects--;
  free(c);
  return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *h, struct ibv_cq **cq, void **context) {
  if (read(h->fd, cq, sizeof *cq) != sizeof *cq) return -1;
  *context = (*cq)->cq_context;
  return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n) {}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a) {
  static uint32_t number = 0x700;
  if (a->qp_type != IBV_QPT_RC || a->cap.max_inline_data > 512) {
    errno = EINVAL;
    return NULL;
  }
  struct qp *q = zero(sizeof *q);
  q->q.context = pd->context;
  q->q.pd = pd;
  q->q.send_cq = a->send_cq;
  q->q.recv_cq = a->recv_cq;
  q->q.qp_num = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
  q->all = a->sq_sig_all;
  a->cap.max_send_wr++;
  a->cap.max_recv_wr += 2;
  q->cap = a->cap;
  ((struct cq *)a->send_cq)->qps++;
  ((struct cq *)a->recv_cq)->qps++;
  ((struct pd *)pd)->objects++;
  return &q->q;
}

int ibv_modify_qp(struct ibv_qp *p, struct ibv_qp_attr *a, int mask) {
  struct qp *q = (struct qp *)p;
  static const int need[] = {
    [IBV_QPS_RESET] = IBV_QP_STATE, [IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    [IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    [IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
    [IBV_QPS_ERR] = IBV_QP_STATE,
  };
  if (a->qp_state > IBV_QPS_ERR || need[a->qp_state] != mask) return EINVAL;
  if (a->qp_state <= IBV_QPS_RTS && a->qp_state != IBV_QPS_RESET && q->attr.qp_state != a->qp_state - 1) return EINVAL;
  if (a->qp_state == IBV_QPS_RTR && a->ah_attr.grh.sgid_index > 3) return ENETUNREACH;
  struct ibv_qp_attr was = q->attr;
  if (mask == IBV_QP_STATE) q->attr.qp_state = a->qp_state;
  else q->attr = *a;
  if (mask & IBV_QP_AV) {
    q->attr.pkey_index = was.pkey_index;
    q->attr.port_num = was.port_num;
    q->attr.qp_access_flags = was.qp_access_flags;
  }
  if (mask & IBV_QP_SQ_PSN) {
    struct ibv_qp_attr now = *a;
    q->attr = was;
    q->attr.qp_state = IBV_QPS_RTS;
    q->attr.sq_psn = now.sq_psn;
    q->attr.timeout = now.timeout;
    q->attr.retry_cnt = now.retry_cnt;
    q->attr.rnr_retry = now.rnr_retry;
    q->attr.max_rd_atomic = now.max_rd_atomic;
  }
  if (a->qp_state == IBV_QPS_ERR) {
    struct ibv_async_event e = {.element.qp = p, .event_type = IBV_EVENT_QP_FATAL};
    if (write(((struct context *)p->context)->async_write, &e, sizeof e) < 0) abort();
    flush(q);
  }
  return 0;
}

int ibv_query_qp(struct ibv_qp *p, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init) {
  *a = ((struct qp *)p)->attr;
  return 0;
}

int ibv_destroy_qp(struct ibv_qp *p) {
  ((struct cq *)p->send_cq)->qps--;
  ((struct cq *)p->recv_cq)->qps--;
  ((struct pd *)p->pd)->objects--;
  free(p);
  return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *p, enum ibv_wr_opcode op, uint32_t flags) { return op == IBV_WR_RDMA_WRITE; }

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e) {
  return read(c->async_fd, e, sizeof *e) == sizeof *e ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *e) {}
