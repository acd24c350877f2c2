//go:build cgo && linux

package turns

// #cgo CFLAGS: -std=gnu11 -Wall -Wextra -Werror
// unsigned long turns_count(void);
import "C"

// Count gives the turns of all kernels since the process began.
func Count() uint64 { return uint64(C.turns_count()) }
