//go:build !purego

#include "textflag.h"
#include "kernel_amd64.h"
#include "float_amd64.h"

// F16C's own conversions: A has the lower eight, B the upper.
#define LOAD(off, A, B) \
	VCVTPH2PS off(R11), A \
	VCVTPH2PS (off+16)(R11), B

#define PLUS(off, A, B) \
	LOAD(off, Y9, Y10) \
	VADDPS Y9, A, A \
	VADDPS Y10, B, B

#define TIMES(off, A, B) \
	LOAD(off, Y9, Y10) \
	VMULPS Y9, A, A \
	VMULPS Y10, B, B

#define MAX(off, A, B) \
	VCVTPH2PS off(R11), Y10 \
	MAX32(Y10, A) \
	VCVTPH2PS (off+16)(R11), Y10 \
	MAX32(Y10, B)

#define MIN(off, A, B) \
	VCVTPH2PS off(R11), Y10 \
	MIN32(Y10, A) \
	VCVTPH2PS (off+16)(R11), Y10 \
	MIN32(Y10, B)

// $0 is to nearest even.
#define DONE(A, B) \
	CANON_HALF(A, B) \
	VCVTPS2PH $0, A, X9 \
	VCVTPS2PH $0, B, X10 \
	VINSERTI128 $1, X10, Y9, A

// func sumF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·sumF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(PLUS, NOTHING)

// func prodF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·prodF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(TIMES, NOTHING)

// func maxF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·maxF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(MAX, NOTHING)

// func minF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·minF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(MIN, NOTHING)

// func avgF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·avgF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	WORLD32
	KERNEL(PLUS, MEAN_HALF)
