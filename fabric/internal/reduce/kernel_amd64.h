// KERNEL(FOLD, MEAN) is the body of every kernel: out[at:end], a whole number of 32-byte vectors, by 128 bytes while they
// last. The accumulators stay in registers while it goes over the ranks in order, and out is written only then: it may be
// an input. Asked to stream, it fetches ahead and writes around the caches, which wants out aligned.
//
// What is done with 32 bytes, with accumulators A and B (halves need both) and R11 the bytes' address:
// LOAD(off, A, B) takes the first rank's, FOLD(off, A, B) combines the next, MEAN(A, B) divides by world or does nothing,
// DONE(A, B) leaves in A what is written. The file defines LOAD and DONE, which all its kernels share.
//
// DI out, SI ins, CX world, DX at, R8 end; R9 the rank's slice, R10 ranks left, R12 where the next block begins.
// Y8 to Y10 are scratch, Y11 to Y15 constants.

#define ARGUMENTS \
	MOVQ out+0(FP), DI \
	MOVQ ins+8(FP), SI \
	MOVQ world+16(FP), CX \
	MOVQ at+24(FP), DX \
	MOVQ end+32(FP), R8

#define FIRST \
	MOVQ SI, R9 \
	MOVQ CX, R10 \
	MOVQ (R9), R11 \
	ADDQ DX, R11

#define NEXT \
	ADDQ $24, R9 \
	MOVQ (R9), R11 \
	ADDQ DX, R11

#define NEAR
#define AHEAD \
	PREFETCHT0 1024(R11) \
	PREFETCHT0 1088(R11)

#define NOTHING(A, B)

#define WIDE(block, rank, check, rest, FETCH, FOLD, MEAN, MOVE) \
block: \
	LEAQ 128(DX), R12 \
	CMPQ R12, R8 \
	JGT rest \
	FIRST \
	FETCH \
	LOAD(0, Y0, Y1) \
	LOAD(32, Y2, Y3) \
	LOAD(64, Y4, Y5) \
	LOAD(96, Y6, Y7) \
	JMP check \
rank: \
	NEXT \
	FETCH \
	FOLD(0, Y0, Y1) \
	FOLD(32, Y2, Y3) \
	FOLD(64, Y4, Y5) \
	FOLD(96, Y6, Y7) \
check: \
	DECQ R10 \
	JNE rank \
	MEAN(Y0, Y1) \
	MEAN(Y2, Y3) \
	MEAN(Y4, Y5) \
	MEAN(Y6, Y7) \
	DONE(Y0, Y1) \
	DONE(Y2, Y3) \
	DONE(Y4, Y5) \
	DONE(Y6, Y7) \
	MOVE Y0, 0(DI)(DX*1) \
	MOVE Y2, 32(DI)(DX*1) \
	MOVE Y4, 64(DI)(DX*1) \
	MOVE Y6, 96(DI)(DX*1) \
	MOVQ R12, DX \
	JMP block

#define KERNEL(FOLD, MEAN) \
	CMPQ stream+40(FP), $0 \
	JEQ wide \
	TESTQ $31, DI \
	JNE wide \
	WIDE(far, farRank, farCheck, farDone, AHEAD, FOLD, MEAN, VMOVNTPS) \
farDone: \
	SFENCE \
	JMP narrow \
	WIDE(wide, wideRank, wideCheck, narrow, NEAR, FOLD, MEAN, VMOVUPS) \
narrow: \
	CMPQ DX, R8 \
	JGE done \
	FIRST \
	LOAD(0, Y0, Y1) \
	JMP narrowCheck \
narrowRank: \
	NEXT \
	FOLD(0, Y0, Y1) \
narrowCheck: \
	DECQ R10 \
	JNE narrowRank \
	MEAN(Y0, Y1) \
	DONE(Y0, Y1) \
	VMOVUPS Y0, (DI)(DX*1) \
	ADDQ $32, DX \
	JMP narrow \
done: \
	VZEROUPPER \
	RET
