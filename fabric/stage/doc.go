// Package stage is the device path over any host path: an engine's stream publishes that a call's input is there and waits
// for its result, and a proxy of this package brings the bytes down to pinned memory, over the wire, and up again.
//
//	engine's stream -> gate (words | kernels) -> ring -> proxy: down, wire, up -> done word -> engine's stream
package stage
