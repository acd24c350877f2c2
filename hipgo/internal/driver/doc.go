// Package driver holds a HIP runtime's table of entry points, its only cgo, and the order in which a runtime is looked for.
// Methods return HIP's code as an int, 0 for success; package hipgo makes errors of them. Without cgo, or elsewhere than on
// Linux, nothing can be loaded and ErrBuild says so.
package driver
