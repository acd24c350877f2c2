// What Go calls on libibverbs, of which it sees an opaque table: table.h has it.
//
// Every function that can fail returns an errno, 0 for success, whichever of libibverbs' three ways its call has. Contexts, PDs,
// MRs, channels, CQs and QPs are raw handles in uintptr_t. Numbers are the header's enums, in host order.
#ifndef VERBSSHIM_H
#define VERBSSHIM_H

#include <stddef.h>
#include <stdint.h>

struct verbsshim;

enum { VERBSSHIM_MISSING = -1 };

// verbsshim_open opens a library. 0: why says why.
uintptr_t verbsshim_open(const char *path, char *why, size_t n);
// verbsshim_load gives the one table of a handle, which lasts as long as the process. VERBSSHIM_MISSING: missing names the first
// required entry point, with its version, that the library lacks.
int verbsshim_load(uintptr_t handle, struct verbsshim **t, char *missing, size_t n);
const char *verbsshim_library(const struct verbsshim *t);

enum { VERBSSHIM_DEVICE_INDEX, VERBSSHIM_GID_TABLE, VERBSSHIM_REGISTER_ORD, VERBSSHIM_DMABUF, VERBSSHIM_DATA_IN_ORDER };
// verbsshim_has says whether the library has what is optional.
int verbsshim_has(const struct verbsshim *t, int what);

struct verbsshim_device {
  char name[64], node[64];
  uint64_t guid;
  int32_t index, node_type, transport, unused;
};
// verbsshim_devices fills at most max, and counts all.
int verbsshim_devices(const struct verbsshim *t, struct verbsshim_device *out, int max, int *count);

struct verbsshim_attr {
  char firmware[64];
  uint64_t node_guid, max_mr_bytes;
  uint32_t vendor_id, part_id, hardware_version;
  int32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd, max_reads_in, max_reads_out, pkeys, ports;
};
struct verbsshim_port {
  uint32_t state, physical_state, max_mtu, active_mtu, link_layer;
  uint32_t width, speed, capabilities, max_message;
  uint32_t gids, pkeys, lid, sm_lid, lmc;
};
struct verbsshim_gid {
  uint8_t gid[16];
  uint32_t index, port, type, interface;
};
int verbsshim_context(const struct verbsshim *t, const char *device, uintptr_t *context);
int verbsshim_close(const struct verbsshim *t, uintptr_t context);
int verbsshim_query_device(const struct verbsshim *t, uintptr_t context, struct verbsshim_attr *out);
int verbsshim_query_port(const struct verbsshim *t, uintptr_t context, int port, struct verbsshim_port *out);
// verbsshim_gids fills at most max slots that are not empty. ENOSYS without VERBSSHIM_GID_TABLE.
int verbsshim_gids(const struct verbsshim *t, uintptr_t context, struct verbsshim_gid *out, int max, int *count);
void verbsshim_device_name(const struct verbsshim *t, uintptr_t context, char *name, size_t n);
int verbsshim_query_gid(const struct verbsshim *t, uintptr_t context, int port, int index, uint8_t gid[16]);
int verbsshim_query_pkey(const struct verbsshim *t, uintptr_t context, int port, int index, uint16_t *pkey);

int verbsshim_alloc_pd(const struct verbsshim *t, uintptr_t context, uintptr_t *pd);
int verbsshim_dealloc_pd(const struct verbsshim *t, uintptr_t pd);

struct verbsshim_mr {
  uintptr_t handle;
  uint32_t lkey, rkey;
};
int verbsshim_reg_mr(const struct verbsshim *t, uintptr_t pd, uintptr_t addr, size_t bytes, uint32_t access, struct verbsshim_mr *out);
int verbsshim_reg_dmabuf_mr(const struct verbsshim *t, uintptr_t pd, int fd, uint64_t offset, size_t bytes, uint64_t iova, uint32_t access,
                            struct verbsshim_mr *out);
int verbsshim_dereg_mr(const struct verbsshim *t, uintptr_t mr);

// The descriptors of channels and of a context's events do not block; an event is acknowledged when it is taken.
int verbsshim_create_channel(const struct verbsshim *t, uintptr_t context, uintptr_t *channel, int *fd);
int verbsshim_destroy_channel(const struct verbsshim *t, uintptr_t channel);
int verbsshim_cq_event(const struct verbsshim *t, uintptr_t channel, uintptr_t *cq);
int verbsshim_async_fd(uintptr_t context);
int verbsshim_async_event(const struct verbsshim *t, uintptr_t context, uint32_t *type, int *port, uintptr_t *handle);

int verbsshim_create_cq(const struct verbsshim *t, uintptr_t context, int entries, uintptr_t channel, int vector, uintptr_t *cq, int *capacity);
int verbsshim_destroy_cq(const struct verbsshim *t, uintptr_t cq);
int verbsshim_arm(uintptr_t cq, int solicited);

struct verbsshim_wc {
  uint64_t id;
  uint32_t status, op, vendor_err, bytes, imm, qpn, src_qp, flags;
};
int verbsshim_poll(uintptr_t cq, struct verbsshim_wc *out, int max, int *count);

struct verbsshim_cap {
  uint32_t send_wrs, recv_wrs, send_sges, recv_sges, inline_bytes;
};
// verbsshim_create_qp makes a reliable connected one; cap is what was asked for, then what it has.
int verbsshim_create_qp(const struct verbsshim *t, uintptr_t pd, uintptr_t send_cq, uintptr_t recv_cq, int signal_all, struct verbsshim_cap *cap,
                        uintptr_t *qp, uint32_t *number);
struct verbsshim_qp_attr {
  uint32_t state, mtu, access, pkey_index, port;
  uint32_t dest_qpn, rq_psn, sq_psn;
  uint32_t max_reads_out, max_reads_in;
  uint32_t min_rnr_timer, timeout, retry_count, rnr_retry;
  uint32_t global, sgid_index, hop_limit, traffic_class, flow_label;
  uint32_t dlid, sl;
  uint8_t gid[16];
};
int verbsshim_modify_qp(const struct verbsshim *t, uintptr_t qp, const struct verbsshim_qp_attr *attr, uint32_t mask);
int verbsshim_query_qp(const struct verbsshim *t, uintptr_t qp, uint32_t mask, struct verbsshim_qp_attr *attr);
int verbsshim_destroy_qp(const struct verbsshim *t, uintptr_t qp);
int verbsshim_data_in_order(const struct verbsshim *t, uintptr_t qp, uint32_t op, int *in_order);

struct verbsshim_sge {
  uint64_t addr;
  uint32_t length, lkey;
};
struct verbsshim_send {
  uint64_t id, remote_addr;
  uint32_t rkey, op, flags, imm, sges, unused;
};
struct verbsshim_recv {
  uint64_t id;
  uint32_t sges, unused;
};
// The requests take their entries from sge one after the other; posted counts those before the first that was refused.
int verbsshim_post_send(uintptr_t qp, const struct verbsshim_send *w, int n, const struct verbsshim_sge *sge, int *posted);
int verbsshim_post_recv(uintptr_t qp, const struct verbsshim_recv *w, int n, const struct verbsshim_sge *sge, int *posted);

#endif
