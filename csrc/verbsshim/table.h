// libibverbs as a table of its entry points, under its own names. No symbol of it is linked: what is not here is an inline of the
// header over the context's own table.
#ifndef VERBSSHIM_TABLE_H
#define VERBSSHIM_TABLE_H

#include "needs.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "verbsshim.h"

// The header's macros of these names call what is not linked.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

// X(name, version): without one of these the library is too old. The versions matter: under IBVERBS_1.0 most have another layout.
#define VERBSSHIM_REQUIRED(X)              \
  X(ibv_get_device_list, "IBVERBS_1.1")     \
  X(ibv_free_device_list, "IBVERBS_1.1")    \
  X(ibv_get_device_name, "IBVERBS_1.1")     \
  X(ibv_get_device_guid, "IBVERBS_1.1")     \
  X(ibv_open_device, "IBVERBS_1.1")         \
  X(ibv_close_device, "IBVERBS_1.1")        \
  X(ibv_query_device, "IBVERBS_1.1")        \
  X(ibv_query_port, "IBVERBS_1.1")          \
  X(ibv_query_gid, "IBVERBS_1.1")           \
  X(ibv_query_pkey, "IBVERBS_1.1")          \
  X(ibv_alloc_pd, "IBVERBS_1.1")            \
  X(ibv_dealloc_pd, "IBVERBS_1.1")          \
  X(ibv_reg_mr, "IBVERBS_1.1")              \
  X(ibv_dereg_mr, "IBVERBS_1.1")            \
  X(ibv_create_comp_channel, "IBVERBS_1.0") \
  X(ibv_destroy_comp_channel, "IBVERBS_1.0") \
  X(ibv_create_cq, "IBVERBS_1.1")           \
  X(ibv_destroy_cq, "IBVERBS_1.1")          \
  X(ibv_get_cq_event, "IBVERBS_1.1")        \
  X(ibv_ack_cq_events, "IBVERBS_1.1")       \
  X(ibv_create_qp, "IBVERBS_1.1")           \
  X(ibv_modify_qp, "IBVERBS_1.1")           \
  X(ibv_query_qp, "IBVERBS_1.1")            \
  X(ibv_destroy_qp, "IBVERBS_1.1")          \
  X(ibv_get_async_event, "IBVERBS_1.1")     \
  X(ibv_ack_async_event, "IBVERBS_1.1")

// X(name, version, result, arguments): null in the table where the library lacks them. Not every header has them either.
#define VERBSSHIM_OPTIONAL(X)                                                                                                     \
  X(ibv_get_device_index, "IBVERBS_1.9", int, (struct ibv_device *))                                                              \
  X(_ibv_query_gid_table, "IBVERBS_1.11", ssize_t, (struct ibv_context *, struct verbsshim_gid *, size_t, uint32_t, size_t))      \
  X(ibv_reg_mr_iova2, "IBVERBS_1.8", struct ibv_mr *, (struct ibv_pd *, void *, size_t, uint64_t, unsigned))                      \
  X(ibv_reg_dmabuf_mr, "IBVERBS_1.12", struct ibv_mr *, (struct ibv_pd *, uint64_t, size_t, uint64_t, int, int))                  \
  X(ibv_query_qp_data_in_order, "IBVERBS_1.14", int, (struct ibv_qp *, enum ibv_wr_opcode, uint32_t))

struct verbsshim {
  char library[1024]; // the file that the entry points come from
#define VERBSSHIM_FIELD(name, version) __typeof__(&name) name;
#define VERBSSHIM_OPTIONAL_FIELD(name, version, result, args) result(*name) args;
  VERBSSHIM_REQUIRED(VERBSSHIM_FIELD)
  VERBSSHIM_OPTIONAL(VERBSSHIM_OPTIONAL_FIELD)
#undef VERBSSHIM_FIELD
#undef VERBSSHIM_OPTIONAL_FIELD
};

// fault makes an errno of what a call returned: 0, an errno, or -1 with errno set.
static inline int fault(int returned) {
  if (returned >= 0) return returned;
  return errno ? errno : EIO;
}

// absent is the errno of a call that returned NULL.
static inline int absent(void) { return errno ? errno : EIO; }

#endif
