// What a build needs, apart: cgo reads this before any C is compiled, so that its absence is said once.
#ifndef VERBSSHIM_NEEDS_H
#define VERBSSHIM_NEEDS_H

#if !__has_include(<infiniband/verbs.h>)
#error "package verbs needs <infiniband/verbs.h>: install libibverbs-dev (rdma-core-devel, rdma-core), or build with -tags noverbs"
#endif

enum { VERBSSHIM_HAS_HEADER = 1 };

#endif
