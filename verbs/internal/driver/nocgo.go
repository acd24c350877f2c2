//go:build !cgo || !linux || noverbs

package driver

import "syscall"

// Built says that this build can load libibverbs.
const Built = false

func open(string) (uintptr, string) { return 0, "" }

func load(uintptr) (Table, string, syscall.Errno) { return nil, "", 0 }
