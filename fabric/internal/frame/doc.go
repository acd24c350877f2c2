// Package frame is the header that goes before every payload on a data connection: which session, group, call and part
// the bytes belong to, so that a receiver can refuse them before it uses any. Pure: no I/O, no allocation.
// docs/protocol.md shows the layout.
package frame
