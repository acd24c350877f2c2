// KERNEL is the body of every kernel: out[at:end], a whole number of 32-byte vectors, by 128 bytes while they last. The
// accumulators stay in registers while it goes over the ranks in order, and out is written only then: it may be an input.
//
// What is done with 32 bytes is the file's own, with accumulators A and B (halves need both) and R11 the bytes' address:
// LOAD(off, A, B) takes the first rank's, FOLD(off, A, B) combines the next, STORE(off, A, B) finishes and writes.
//
// DI out, SI ins, CX world, DX at, R8 end; R9 the rank's slice, R10 ranks left, R12 where the next block begins.
// Y8 to Y10 are scratch, Y11 to Y15 constants.

#define ARGUMENTS \
	MOVQ out+0(FP), DI \
	MOVQ ins+8(FP), SI \
	MOVQ world+16(FP), CX \
	MOVQ at+24(FP), DX \
	MOVQ end+32(FP), R8

#define KERNEL \
wide: \
	LEAQ 128(DX), R12 \
	CMPQ R12, R8 \
	JGT narrow \
	MOVQ SI, R9 \
	MOVQ CX, R10 \
	MOVQ (R9), R11 \
	ADDQ DX, R11 \
	LOAD(0, Y0, Y1) \
	LOAD(32, Y2, Y3) \
	LOAD(64, Y4, Y5) \
	LOAD(96, Y6, Y7) \
	JMP wideNext \
wideRank: \
	ADDQ $24, R9 \
	MOVQ (R9), R11 \
	ADDQ DX, R11 \
	FOLD(0, Y0, Y1) \
	FOLD(32, Y2, Y3) \
	FOLD(64, Y4, Y5) \
	FOLD(96, Y6, Y7) \
wideNext: \
	DECQ R10 \
	JNE wideRank \
	LEAQ (DI)(DX*1), R11 \
	STORE(0, Y0, Y1) \
	STORE(32, Y2, Y3) \
	STORE(64, Y4, Y5) \
	STORE(96, Y6, Y7) \
	MOVQ R12, DX \
	JMP wide \
narrow: \
	CMPQ DX, R8 \
	JGE done \
	MOVQ SI, R9 \
	MOVQ CX, R10 \
	MOVQ (R9), R11 \
	ADDQ DX, R11 \
	LOAD(0, Y0, Y1) \
	JMP narrowNext \
narrowRank: \
	ADDQ $24, R9 \
	MOVQ (R9), R11 \
	ADDQ DX, R11 \
	FOLD(0, Y0, Y1) \
narrowNext: \
	DECQ R10 \
	JNE narrowRank \
	LEAQ (DI)(DX*1), R11 \
	STORE(0, Y0, Y1) \
	ADDQ $32, DX \
	JMP narrow \
done: \
	VZEROUPPER \
	RET

// Single precision, which halves accumulate in too.

#define NAN32 \
	MOVL $0x7fc00000, AX \
	VMOVD AX, X15 \
	VPBROADCASTD X15, Y15

#define WORLD32 \
	VCVTSI2SSQ CX, X11, X11 \
	VBROADCASTSS X11, Y11

// A NaN is the only number unordered with itself.
#define CANONICAL32(A) \
	VCMPPS $3, A, A, Y8 \
	VBLENDVPS Y8, Y15, A, A

// The instruction gives its second operand for equal zeros and for a NaN: of both orders, a +0 is the AND and a -0 the OR.
#define MAX32(B, A) \
	VMAXPS B, A, Y8 \
	VMAXPS A, B, Y9 \
	VANDPS Y8, Y9, Y9 \
	VCMPPS $3, B, A, A \
	VORPS Y9, A, A

#define MIN32(B, A) \
	VMINPS B, A, Y8 \
	VMINPS A, B, Y9 \
	VORPS Y8, Y9, Y9 \
	VCMPPS $3, B, A, A \
	VORPS Y9, A, A
