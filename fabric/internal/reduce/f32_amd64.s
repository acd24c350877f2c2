//go:build !purego

#include "textflag.h"
#include "kernel_amd64.h"

#define LOAD(off, A, B) VMOVUPS off(R11), A
#define STORE(off, A, B) CANONICAL32(A); VMOVUPS A, off(R11)

#define FOLD(off, A, B) VADDPS off(R11), A, A

// func sumF32(out *byte, ins *[]byte, world, at, end int)
TEXT ·sumF32(SB), NOSPLIT, $0-40
	ARGUMENTS
	NAN32
	KERNEL

#undef FOLD
#define FOLD(off, A, B) VMULPS off(R11), A, A

// func prodF32(out *byte, ins *[]byte, world, at, end int)
TEXT ·prodF32(SB), NOSPLIT, $0-40
	ARGUMENTS
	NAN32
	KERNEL

#undef FOLD
#define FOLD(off, A, B) VMOVUPS off(R11), Y10; MAX32(Y10, A)

// func maxF32(out *byte, ins *[]byte, world, at, end int)
TEXT ·maxF32(SB), NOSPLIT, $0-40
	ARGUMENTS
	NAN32
	KERNEL

#undef FOLD
#define FOLD(off, A, B) VMOVUPS off(R11), Y10; MIN32(Y10, A)

// func minF32(out *byte, ins *[]byte, world, at, end int)
TEXT ·minF32(SB), NOSPLIT, $0-40
	ARGUMENTS
	NAN32
	KERNEL

#undef FOLD
#define FOLD(off, A, B) VADDPS off(R11), A, A
#undef STORE
#define STORE(off, A, B) VDIVPS Y11, A, A; CANONICAL32(A); VMOVUPS A, off(R11)

// func avgF32(out *byte, ins *[]byte, world, at, end int)
TEXT ·avgF32(SB), NOSPLIT, $0-40
	ARGUMENTS
	NAN32
	WORLD32
	KERNEL
