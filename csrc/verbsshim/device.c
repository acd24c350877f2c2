//go:build cgo && linux && !noverbs

#include "table.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int verbsshim_devices(const struct verbsshim *t, struct verbsshim_device *out, int max, int *count) {
  *count = 0;
  errno = 0;
  struct ibv_device **list = t->ibv_get_device_list(count);
  if (!list) return errno ? errno : ENOSYS;
  for (int i = 0; i < *count && i < max; i++) {
    struct ibv_device *d = list[i];
    memset(&out[i], 0, sizeof out[i]);
    snprintf(out[i].name, sizeof out[i].name, "%s", t->ibv_get_device_name(d));
    snprintf(out[i].node, sizeof out[i].node, "%s", d->dev_name);
    out[i].guid = be64toh(t->ibv_get_device_guid(d));
    out[i].index = t->ibv_get_device_index ? t->ibv_get_device_index(d) : -1;
    out[i].node_type = d->node_type;
    out[i].transport = d->transport_type;
  }
  t->ibv_free_device_list(list);
  return 0;
}

static int unblock(int fd) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return errno;
  return 0;
}

int verbsshim_context(const struct verbsshim *t, const char *device, uintptr_t *context) {
  int count = 0, e = ENODEV;
  errno = 0;
  struct ibv_device **list = t->ibv_get_device_list(&count);
  if (!list) return errno ? errno : ENOSYS;
  for (int i = 0; i < count; i++) {
    if (strcmp(t->ibv_get_device_name(list[i]), device)) continue;
    errno = 0;
    struct ibv_context *c = t->ibv_open_device(list[i]);
    e = c ? unblock(c->async_fd) : absent();
    if (!e) *context = (uintptr_t)c;
    else if (c) (void)t->ibv_close_device(c);
    break;
  }
  t->ibv_free_device_list(list);
  return e;
}

int verbsshim_close(const struct verbsshim *t, uintptr_t context) {
  errno = 0;
  return fault(t->ibv_close_device((struct ibv_context *)context));
}

int verbsshim_query_device(const struct verbsshim *t, uintptr_t context, struct verbsshim_attr *out) {
  struct ibv_device_attr a;
  memset(&a, 0, sizeof a);
  errno = 0;
  int e = fault(t->ibv_query_device((struct ibv_context *)context, &a));
  if (e) return e;
  memset(out, 0, sizeof *out);
  snprintf(out->firmware, sizeof out->firmware, "%.63s", a.fw_ver);
  out->node_guid = be64toh(a.node_guid);
  out->max_mr_bytes = a.max_mr_size;
  out->vendor_id = a.vendor_id;
  out->part_id = a.vendor_part_id;
  out->hardware_version = a.hw_ver;
  out->max_qp = a.max_qp;
  out->max_qp_wr = a.max_qp_wr;
  out->max_sge = a.max_sge;
  out->max_cq = a.max_cq;
  out->max_cqe = a.max_cqe;
  out->max_mr = a.max_mr;
  out->max_pd = a.max_pd;
  out->max_reads_in = a.max_qp_rd_atom;
  out->max_reads_out = a.max_qp_init_rd_atom;
  out->pkeys = a.max_pkeys;
  out->ports = a.phys_port_cnt;
  return 0;
}

int verbsshim_query_port(const struct verbsshim *t, uintptr_t context, int port, struct verbsshim_port *out) {
  struct ibv_port_attr a;
  memset(&a, 0, sizeof a); // the exported function writes less than this
  errno = 0;
  int e = fault(t->ibv_query_port((struct ibv_context *)context, (uint8_t)port, (struct _compat_ibv_port_attr *)&a));
  if (e) return e;
  out->state = a.state;
  out->physical_state = a.phys_state;
  out->max_mtu = a.max_mtu;
  out->active_mtu = a.active_mtu;
  out->link_layer = a.link_layer;
  out->width = a.active_width;
  out->speed = a.active_speed;
  out->capabilities = a.port_cap_flags;
  out->max_message = a.max_msg_sz;
  out->gids = (uint32_t)a.gid_tbl_len;
  out->pkeys = a.pkey_tbl_len;
  out->lid = a.lid;
  out->sm_lid = a.sm_lid;
  out->lmc = a.lmc;
  return 0;
}

int verbsshim_gids(const struct verbsshim *t, uintptr_t context, struct verbsshim_gid *out, int max, int *count) {
  *count = 0;
  if (!t->_ibv_query_gid_table) return ENOSYS;
  errno = 0;
  ssize_t n = t->_ibv_query_gid_table((struct ibv_context *)context, out, (size_t)max, 0, sizeof *out);
  if (n < 0) return n == -1 ? absent() : (int)-n;
  *count = (int)n;
  return 0;
}

void verbsshim_device_name(const struct verbsshim *t, uintptr_t context, char *name, size_t n) {
  snprintf(name, n, "%s", t->ibv_get_device_name(((struct ibv_context *)context)->device));
}

int verbsshim_query_gid(const struct verbsshim *t, uintptr_t context, int port, int index, uint8_t gid[16]) {
  union ibv_gid g;
  errno = 0;
  int e = fault(t->ibv_query_gid((struct ibv_context *)context, (uint8_t)port, index, &g));
  if (!e) memcpy(gid, g.raw, 16);
  return e;
}

int verbsshim_query_pkey(const struct verbsshim *t, uintptr_t context, int port, int index, uint16_t *pkey) {
  __be16 key = 0;
  errno = 0;
  int e = fault(t->ibv_query_pkey((struct ibv_context *)context, (uint8_t)port, index, &key));
  *pkey = be16toh(key);
  return e;
}

int verbsshim_async_fd(uintptr_t context) { return ((struct ibv_context *)context)->async_fd; }

int verbsshim_async_event(const struct verbsshim *t, uintptr_t context, uint32_t *type, int *port, uintptr_t *handle) {
  struct ibv_async_event event;
  errno = 0;
  int e = fault(t->ibv_get_async_event((struct ibv_context *)context, &event));
  if (e) return e;
  *type = event.event_type;
  *port = 0;
  *handle = 0;
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR: *handle = (uintptr_t)event.element.cq; break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: *handle = (uintptr_t)event.element.qp; break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE: *port = event.element.port_num; break;
    default: break;
  }
  t->ibv_ack_async_event(&event);
  return 0;
}

int verbsshim_create_channel(const struct verbsshim *t, uintptr_t context, uintptr_t *channel, int *fd) {
  errno = 0;
  struct ibv_comp_channel *c = t->ibv_create_comp_channel((struct ibv_context *)context);
  if (!c) return absent();
  int e = unblock(c->fd);
  if (e) {
    (void)t->ibv_destroy_comp_channel(c);
    return e;
  }
  *channel = (uintptr_t)c;
  *fd = c->fd;
  return 0;
}

int verbsshim_destroy_channel(const struct verbsshim *t, uintptr_t channel) {
  errno = 0;
  return fault(t->ibv_destroy_comp_channel((struct ibv_comp_channel *)channel));
}

int verbsshim_cq_event(const struct verbsshim *t, uintptr_t channel, uintptr_t *cq) {
  struct ibv_cq *c = NULL;
  void *context;
  errno = 0;
  int e = fault(t->ibv_get_cq_event((struct ibv_comp_channel *)channel, &c, &context));
  if (e) return e;
  t->ibv_ack_cq_events(c, 1);
  *cq = (uintptr_t)c;
  return 0;
}
