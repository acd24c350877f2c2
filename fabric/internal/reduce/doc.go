// Package reduce combines numbers as every path promises: in rank order 0, 1, 2, ..., with the same bits wherever it
// runs. F16 and BF16 accumulate in float32 and are rounded to nearest even once, at the end; F32 and F64 accumulate in
// their own type; integers wrap; subnormals are kept; a NaN, given or arisen, is the dtype's canonical one. It is pure
// arithmetic over little-endian bytes: no I/O, no allocation, no alignment needed.
package reduce
