//go:build !purego

#include "textflag.h"
#include "kernel_arm64.h"

// As little-endian words, every other bfloat16 is the upper half of a float32 already: A has the odd ones, B the even.
#define LOAD(off, A, B) \
	LDRQ(off, A) \
	SHL4S16(B, A) \
	AND16B(A, A, 29)

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

// To nearest even, leaving the bfloat16 in the upper half: add one less than half of its last place, and its last bit.
#define ROUND(A) \
	USHR4S16(16, A) \
	AND16B(16, 16, 28) \
	ADD4S(A, A, 27) \
	ADD4S(A, A, 16)

#define DONE(A, B) \
	CANON_HALF(A, B) \
	ROUND(A) \
	ROUND(B) \
	SRI4S16(A, B)

// V29 keeps upper halves, V28 is 1 and V27 0x7fff in each single.
#define CONSTANTS \
	NAN32 \
	MOVD $0xffff0000, R9 \
	VDUP R9, V29.S4 \
	MOVD $1, R9 \
	VDUP R9, V28.S4 \
	MOVD $0x7fff, R9 \
	VDUP R9, V27.S4

// func sumBF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·sumBF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTS
	KERNEL(PLUS, NOTHING)

// func prodBF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·prodBF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTS
	KERNEL(TIMES, NOTHING)

// func maxBF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·maxBF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTS
	KERNEL(MAX, NOTHING)

// func minBF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·minBF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTS
	KERNEL(MIN, NOTHING)

// func avgBF16(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·avgBF16(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTS
	WORLD32
	KERNEL(PLUS, MEAN_HALF)
