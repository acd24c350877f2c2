//go:build !purego

#include "textflag.h"
#include "kernel_arm64.h"

#define LOAD(off, A, B) LDRQ(off, A)
#define PLUS(off, A, B) LDRQ(off, 17); FADD2D(A, A, 17)
#define TIMES(off, A, B) LDRQ(off, 17); FMUL2D(A, A, 17)
#define MAX(off, A, B) LDRQ(off, 17); FMAX2D(A, A, 17)
#define MIN(off, A, B) LDRQ(off, 17); FMIN2D(A, A, 17)
#define MEAN(A, B) FDIV2D(A, A, 30)
#define DONE(A, B) CANON64(A)

// func sumF64(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·sumF64(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN64
	KERNEL(PLUS, NOTHING)

// func prodF64(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·prodF64(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN64
	KERNEL(TIMES, NOTHING)

// func maxF64(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·maxF64(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN64
	KERNEL(MAX, NOTHING)

// func minF64(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·minF64(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN64
	KERNEL(MIN, NOTHING)

// func avgF64(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·avgF64(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN64
	WORLD64
	KERNEL(PLUS, MEAN)
