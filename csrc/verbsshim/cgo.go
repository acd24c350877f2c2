//go:build cgo && linux && !noverbs

package verbsshim

// #cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
// #include "needs.h"
import "C"

import "embed"

const _ = C.VERBSSHIM_HAS_HEADER

// An importer is rebuilt when a header changes only because the header is embedded here.
//
//go:embed *.h
var _ embed.FS
