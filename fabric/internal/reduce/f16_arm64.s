//go:build !purego

#include "textflag.h"
#include "kernel_arm64.h"

// A has the lower four, B the upper.
#define LOAD(off, A, B) \
	LDRQ(off, B) \
	FCVTL(A, B) \
	FCVTL2(B, B)

#define PLUS(off, A, B) \
	LOAD(off, 17, 18) \
	FADD4S(A, A, 17) \
	FADD4S(B, B, 18)

#define TIMES(off, A, B) \
	LOAD(off, 17, 18) \
	FMUL4S(A, A, 17) \
	FMUL4S(B, B, 18)

#define MAX(off, A, B) \
	LOAD(off, 17, 18) \
	FMAX4S(A, A, 17) \
	FMAX4S(B, B, 18)

#define MIN(off, A, B) \
	LOAD(off, 17, 18) \
	FMIN4S(A, A, 17) \
	FMIN4S(B, B, 18)

// The rounding mode is to nearest even.
#define DONE(A, B) \
	CANON_HALF(A, B) \
	FCVTN(A, A) \
	FCVTN2(A, B)

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
