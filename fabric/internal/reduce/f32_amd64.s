//go:build !purego

#include "textflag.h"
#include "kernel_amd64.h"
#include "float_amd64.h"

#define LOAD(off, A, B) VMOVUPS off(R11), A
#define PLUS(off, A, B) VADDPS off(R11), A, A
#define TIMES(off, A, B) VMULPS off(R11), A, A
#define MAX(off, A, B) VMOVUPS off(R11), Y10; MAX32(Y10, A)
#define MIN(off, A, B) VMOVUPS off(R11), Y10; MIN32(Y10, A)
#define MEAN(A, B) VDIVPS Y11, A, A
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
