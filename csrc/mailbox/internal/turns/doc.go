// Package turns counts how often a kernel's host build has looked at a word in vain, for tests: that a kernel waits is seen
// and not guessed. It is empty but on Linux with cgo.
package turns
