// Package gpu finds the device that a command works on, a real one or the software device, tries it, and moves bytes to and from its
// memory.
package gpu
