// Package twin reaches the kernels' host build and the C compiler's layout of mailbox.h from Go, for tests. It is empty but on
// Linux with cgo.
package twin
