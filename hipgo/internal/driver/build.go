package driver

import (
	"errors"
	"fmt"
)

// ErrBuild: this build has no cgo on Linux, so that no C library can be called.
var ErrBuild = fmt.Errorf("HIP needs a build for Linux with cgo (CGO_ENABLED=1 and a C compiler): %w", errors.ErrUnsupported)
