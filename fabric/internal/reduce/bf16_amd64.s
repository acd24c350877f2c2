//go:build !purego

#include "textflag.h"
#include "kernel_amd64.h"
#include "float_amd64.h"

// As little-endian words, every other bfloat16 is the upper half of a float32 already: A has the even ones, B the odd.
#define LOAD(off, A, B) \
	VMOVDQU off(R11), B \
	VPSLLD $16, B, A \
	VPAND Y14, B, B

#define PLUS(off, A, B) \
	LOAD(off, Y9, Y10) \
	VADDPS Y9, A, A \
	VADDPS Y10, B, B

#define TIMES(off, A, B) \
	LOAD(off, Y9, Y10) \
	VMULPS Y9, A, A \
	VMULPS Y10, B, B

#define MAX(off, A, B) \
	VMOVDQU off(R11), Y10 \
	VPSLLD $16, Y10, Y10 \
	MAX32(Y10, A) \
	VPAND off(R11), Y14, Y10 \
	MAX32(Y10, B)

#define MIN(off, A, B) \
	VMOVDQU off(R11), Y10 \
	VPSLLD $16, Y10, Y10 \
	MIN32(Y10, A) \
	VPAND off(R11), Y14, Y10 \
	MIN32(Y10, B)

// To nearest even, all words at once: Y8 gets the upper halves, Y9 the lower, which round up from 0x8000, or from 0x8001
// where the upper half is even. That is a sign, to be subtracted as -1.
#define DONE(A, B) \
	CANON_HALF(A, B) \
	VPSHUFB Y13, A, Y8 \
	VPSHUFB Y13, B, Y9 \
	VPBLENDW $0xaa, B, Y8, Y8 \
	VPBLENDW $0xaa, Y9, A, Y9 \
	VPANDN Y12, Y8, Y10 \
	VPSUBUSW Y10, Y9, Y9 \
	VPSRAW $15, Y9, Y9 \
	VPSUBW Y9, Y8, A

// Y14 keeps upper halves, Y13 swaps halves, Y12 is 1 in each half.
#define CONSTANTS \
	NAN32 \
	MOVQ $0x0504070601000302, AX \
	VMOVQ AX, X13 \
	MOVQ $0x0d0c0f0e09080b0a, AX \
	VPINSRQ $1, AX, X13, X13 \
	VINSERTI128 $1, X13, Y13, Y13 \
	VPCMPEQD Y14, Y14, Y14 \
	VPSRLW $15, Y14, Y12 \
	VPSLLD $16, Y14, Y14

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
