// Package measure checks the operations of a group against the reference and times them.
//
// A Plan says what; rank 0 shares it, so that all ranks do the same. Every rank makes every rank's input from the plan's
// seed, so that it can tell the right result by itself, bit for bit. Everything is checked before it is timed; the
// samples that are reported are rank 0's.
//
// Bytes are what a rank contributes: its in. The bandwidths are nccl-tests': algbw is the operation's bytes over the mean
// time, where those of a gather are all ranks' together, and busbw is what each rank's link carries of it.
package measure
