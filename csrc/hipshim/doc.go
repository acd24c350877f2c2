// Package hipshim is C: a table of a HIP runtime's entry points, filled by name from whatever resolves them, and one function
// a call over it that sets the device, calls, and leaves the thread's current device as it was. It has no Go API;
// hipgo/internal/driver is its only importer.
package hipshim
