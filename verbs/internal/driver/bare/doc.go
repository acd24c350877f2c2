// Package bare posts from C, by libibverbs' own inlines: what a crossing of package driver is measured against. It needs cgo on
// Linux, and the tag of the tests in the machine, rxevm.
package bare
