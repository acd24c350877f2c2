//go:build cgo && linux && !noverbs

#include "table.h"

int verbsshim_alloc_pd(const struct verbsshim *t, uintptr_t context, uintptr_t *pd) {
  errno = 0;
  struct ibv_pd *p = t->ibv_alloc_pd((struct ibv_context *)context);
  if (!p) return absent();
  *pd = (uintptr_t)p;
  return 0;
}

int verbsshim_dealloc_pd(const struct verbsshim *t, uintptr_t pd) {
  errno = 0;
  return fault(t->ibv_dealloc_pd((struct ibv_pd *)pd));
}

static int made(struct ibv_mr *mr, struct verbsshim_mr *out) {
  if (!mr) return absent();
  out->handle = (uintptr_t)mr;
  out->lkey = mr->lkey;
  out->rkey = mr->rkey;
  return 0;
}

// Access bits that a device may ignore: a library without the call that knows them ignores them too.
enum { OPTIONAL_ACCESS = 0x3ff << 20 };

int verbsshim_reg_mr(const struct verbsshim *t, uintptr_t pd, uintptr_t addr, size_t bytes, uint32_t access, struct verbsshim_mr *out) {
  struct ibv_pd *p = (struct ibv_pd *)pd;
  errno = 0;
  if ((access & OPTIONAL_ACCESS) && t->ibv_reg_mr_iova2) return made(t->ibv_reg_mr_iova2(p, (void *)addr, bytes, addr, access), out);
  return made(t->ibv_reg_mr(p, (void *)addr, bytes, (int)(access & ~OPTIONAL_ACCESS)), out);
}

int verbsshim_reg_dmabuf_mr(const struct verbsshim *t, uintptr_t pd, int fd, uint64_t offset, size_t bytes, uint64_t iova, uint32_t access,
                            struct verbsshim_mr *out) {
  if (!t->ibv_reg_dmabuf_mr) return ENOSYS;
  errno = 0;
  return made(t->ibv_reg_dmabuf_mr((struct ibv_pd *)pd, offset, bytes, iova, fd, (int)access), out);
}

int verbsshim_dereg_mr(const struct verbsshim *t, uintptr_t mr) {
  errno = 0;
  return fault(t->ibv_dereg_mr((struct ibv_mr *)mr));
}
