// Package verbsshim is C: a table of libibverbs' entry points, filled by name and version at run time, and one function a call
// over it that returns an errno. It has no Go API; verbs/internal/driver is its only importer.
package verbsshim
