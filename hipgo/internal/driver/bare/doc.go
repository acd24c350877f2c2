// Package bare is a runtime that does nothing, and a C call that does nothing: what a crossing of package driver is measured
// against, and where tests see what a table without a runtime behind it does. It needs cgo on Linux.
package bare
