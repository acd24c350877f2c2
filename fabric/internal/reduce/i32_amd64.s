//go:build !purego

#include "textflag.h"
#include "kernel_amd64.h"

#define LOAD(off, A, B) VMOVDQU off(R11), A
#define PLUS(off, A, B) VPADDD off(R11), A, A
#define TIMES(off, A, B) VPMULLD off(R11), A, A
#define MAX(off, A, B) VPMAXSD off(R11), A, A
#define MIN(off, A, B) VPMINSD off(R11), A, A
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
