//go:build cgo && linux

package softhip

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -fvisibility=hidden -Wall -Wextra -Werror
// #cgo LDFLAGS: -pthread
import "C"

import "embed"

// An importer is rebuilt when a header changes only because the header is embedded here.
//
//go:embed *.h
var _ embed.FS
