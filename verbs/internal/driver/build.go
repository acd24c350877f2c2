package driver

import "errors"

// ErrBuild says that this build cannot call a C library.
var ErrBuild = errors.New("RDMA needs a build for Linux with cgo (CGO_ENABLED=1, a C compiler, libibverbs-dev) and without the tag noverbs")
