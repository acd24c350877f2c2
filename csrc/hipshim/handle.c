//go:build cgo && linux

#define _GNU_SOURCE
#include "hipshim.h"

#include <dlfcn.h>
#include <link.h>

// A handle of dlopen is the address of its link map, which dlsym reads unasked. What dlopen opens or closes meanwhile waits for
// the lock that dl_iterate_phdr holds.
struct search {
  const struct link_map *first;
  uintptr_t handle;
  int found;
};

static int look(struct dl_phdr_info *info, size_t bytes, void *context) {
  (void)info;
  (void)bytes;
  struct search *s = context;
  for (const struct link_map *m = s->first; m && !s->found; m = m->l_next) s->found = (uintptr_t)m == s->handle;
  return 1;
}

int hipshim_given(uintptr_t handle) {
  struct search s = {dlopen(NULL, RTLD_LAZY), handle, 0};
  dl_iterate_phdr(look, &s);
  return s.found;
}
