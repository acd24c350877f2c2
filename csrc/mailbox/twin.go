//go:build cgo && linux

package mailbox

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
import "C"
