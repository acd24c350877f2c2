//go:build !purego

#include "textflag.h"
#include "kernel_arm64.h"

#define LOAD(off, A, B) LDRQ(off, A)
#define PLUS(off, A, B) LDRQ(off, 17); ADD4S(A, A, 17)
#define TIMES(off, A, B) LDRQ(off, 17); MUL4S(A, A, 17)
#define MAX(off, A, B) LDRQ(off, 17); SMAX4S(A, A, 17)
#define MIN(off, A, B) LDRQ(off, 17); SMIN4S(A, A, 17)
#define DONE(A, B)

// func sumI32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·sumI32(SB), NOSPLIT, $0-48
	ARGUMENTS
	KERNEL(PLUS, NOTHING)

// func prodI32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·prodI32(SB), NOSPLIT, $0-48
	ARGUMENTS
	KERNEL(TIMES, NOTHING)

// func maxI32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·maxI32(SB), NOSPLIT, $0-48
	ARGUMENTS
	KERNEL(MAX, NOTHING)

// func minI32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·minI32(SB), NOSPLIT, $0-48
	ARGUMENTS
	KERNEL(MIN, NOTHING)
