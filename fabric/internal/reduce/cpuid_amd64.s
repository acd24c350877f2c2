//go:build !purego

#include "textflag.h"

// func leaf1ECX() uint32
TEXT ·leaf1ECX(SB), NOSPLIT, $0-4
	MOVL $1, AX
	XORL CX, CX
	CPUID
	MOVL CX, ret+0(FP)
	RET
