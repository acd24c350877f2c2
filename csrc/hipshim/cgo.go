//go:build cgo && linux

package hipshim

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra
import "C"

import "embed"

// An importer is rebuilt when a header changes only because the header is embedded here.
//
//go:embed *.h
var _ embed.FS
