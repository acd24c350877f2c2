package driver

import "errors"

// ErrBuild says that this build has no cgo on Linux, so that no C library can be called.
var ErrBuild = errors.New("HIP needs a build for Linux with cgo (CGO_ENABLED=1 and a C compiler)")
