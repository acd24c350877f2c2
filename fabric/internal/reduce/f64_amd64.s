//go:build !purego

#include "textflag.h"
#include "kernel_amd64.h"
#include "float_amd64.h"

#define LOAD(off, A, B) VMOVUPD off(R11), A
#define PLUS(off, A, B) VADDPD off(R11), A, A
#define TIMES(off, A, B) VMULPD off(R11), A, A
#define MAX(off, A, B) VMOVUPD off(R11), Y10; MAX64(Y10, A)
#define MIN(off, A, B) VMOVUPD off(R11), Y10; MIN64(Y10, A)
#define MEAN(A, B) VDIVPD Y11, A, A
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
