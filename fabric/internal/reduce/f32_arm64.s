//go:build !purego

#include "textflag.h"
#include "kernel_arm64.h"

#define LOAD(off, A, B) LDRQ(off, A)
#define PLUS(off, A, B) LDRQ(off, 17); FADD4S(A, A, 17)
#define TIMES(off, A, B) LDRQ(off, 17); FMUL4S(A, A, 17)
#define MAX(off, A, B) LDRQ(off, 17); FMAX4S(A, A, 17)
#define MIN(off, A, B) LDRQ(off, 17); FMIN4S(A, A, 17)
#define MEAN(A, B) FDIV4S(A, A, 30)
#define DONE(A, B) CANON32(A)

// func sumF32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·sumF32(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(PLUS, NOTHING)

// func prodF32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·prodF32(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(TIMES, NOTHING)

// func maxF32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·maxF32(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(MAX, NOTHING)

// func minF32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·minF32(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	KERNEL(MIN, NOTHING)

// func avgF32(out *byte, ins *[]byte, world, at, end, stream int)
TEXT ·avgF32(SB), NOSPLIT, $0-48
	ARGUMENTS
	NAN32
	WORLD32
	KERNEL(PLUS, MEAN)
