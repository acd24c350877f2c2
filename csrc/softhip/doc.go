// Package softhip is C: a HIP device in software, under HIP's own names. softhip.h says what it is and how a test steers
// it; hipgo/hiptest is its Go side, and also builds it as libamdhip64.so. It has no Go API.
//
// A world (world.c) has devices, each with hardware queues and SDMA rings (engine.c): threads that run operations (run.c)
// in order. Streams (stream.c) queue operations on them; memory.c and bind.c know which bytes an address means, and
// addresses.c gives no address twice.
package softhip
