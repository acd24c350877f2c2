// Package reduce combines numbers as every path promises: in rank order 0, 1, 2, ..., with the same bits wherever it
// runs. F16 and BF16 accumulate in float32 and are rounded to nearest even once, at the end; F32 and F64 accumulate in
// their own type; integers wrap; subnormals are kept; a NaN, given or arisen, is the dtype's canonical one. It is pure
// arithmetic over little-endian bytes: no I/O, no allocation, no alignment needed.
//
// Three ways give the same bits. Kernels, in assembly (AVX2 and F16C, NEON), combine every whole vector of all floats and
// of I32, and sums of I64. Loops, in Go, do sums and averages where there is no kernel, and what is left of them. The
// reference does all of it, plainly and slowly, and is what the tests hold the others to. The purego build tag leaves the
// kernels out.
//
// A kernel is KERNEL of kernel_GOARCH.h, around a dtype's and an operation's few instructions in DTYPE_GOARCH.s.
package reduce
