// Package engine is a HIP binding such as an engine has of its own: its dlopen, its prototypes, its memory and streams, and nothing of
// package driver's. Tests hand its handle and raw values over, as an engine would. It needs cgo on Linux.
package engine
