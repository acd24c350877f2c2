// KERNEL(FOLD, MEAN) is the body of every kernel: out[at:end], a whole number of 16-byte vectors, by 64 bytes while they
// last. The accumulators stay in registers while it goes over the ranks in order, and out is written only then: it may be
// an input. Caches are left to the processor, whatever stream says.
//
// What is done with 16 bytes, with accumulators A and B (halves need both) and R8 the bytes' address:
// LOAD(off, A, B) takes the first rank's, FOLD(off, A, B) combines the next, MEAN(A, B) divides by world or does nothing,
// DONE(A, B) leaves in A what is written. The file defines LOAD and DONE, which all its kernels share.
//
// R0 out, R1 ins, R2 world, R3 at, R4 end; R5 the rank's slice, R6 ranks left, R9 where the next block begins.
// V16 to V18 are scratch, V27 to V31 constants.

#define ARGUMENTS \
	MOVD out+0(FP), R0 \
	MOVD ins+8(FP), R1 \
	MOVD world+16(FP), R2 \
	MOVD at+24(FP), R3 \
	MOVD end+32(FP), R4

#define FIRST \
	MOVD R1, R5 \
	MOVD R2, R6 \
	MOVD (R5), R8 \
	ADD R3, R8

#define NEXT \
	ADD $24, R5 \
	MOVD (R5), R8 \
	ADD R3, R8

#define NOTHING(A, B)

#define KERNEL(FOLD, MEAN) \
wide: \
	ADD $64, R3, R9 \
	CMP R4, R9 \
	BGT narrow \
	FIRST \
	LOAD(0, 0, 1) \
	LOAD(16, 2, 3) \
	LOAD(32, 4, 5) \
	LOAD(48, 6, 7) \
	B wideCheck \
wideRank: \
	NEXT \
	FOLD(0, 0, 1) \
	FOLD(16, 2, 3) \
	FOLD(32, 4, 5) \
	FOLD(48, 6, 7) \
wideCheck: \
	SUBS $1, R6 \
	BNE wideRank \
	MEAN(0, 1) \
	MEAN(2, 3) \
	MEAN(4, 5) \
	MEAN(6, 7) \
	DONE(0, 1) \
	DONE(2, 3) \
	DONE(4, 5) \
	DONE(6, 7) \
	ADD R0, R3, R8 \
	STRQ(0, 0) \
	STRQ(16, 2) \
	STRQ(32, 4) \
	STRQ(48, 6) \
	MOVD R9, R3 \
	B wide \
narrow: \
	CMP R4, R3 \
	BGE done \
	FIRST \
	LOAD(0, 0, 1) \
	B narrowCheck \
narrowRank: \
	NEXT \
	FOLD(0, 0, 1) \
narrowCheck: \
	SUBS $1, R6 \
	BNE narrowRank \
	MEAN(0, 1) \
	DONE(0, 1) \
	ADD R0, R3, R8 \
	STRQ(0, 0) \
	ADD $16, R3 \
	B narrow \
done: \
	RET

// The assembler has no vector floating point; these are its instructions by Arm's names and order of operands: the
// destination d first, registers by number.

#define OP3(code, d, n, m) WORD $(code | (m)<<16 | (n)<<5 | (d))
#define OP2(code, d, n) WORD $(code | (n)<<5 | (d))

#define LDRQ(off, d) WORD $(0x3dc00100 | ((off)/16)<<10 | (d)) // ldr qd, [x8, #off]
#define STRQ(off, d) WORD $(0x3d800100 | ((off)/16)<<10 | (d)) // str qd, [x8, #off]

#define FADD4S(d, n, m) OP3(0x4e20d400, d, n, m)
#define FMUL4S(d, n, m) OP3(0x6e20dc00, d, n, m)
#define FDIV4S(d, n, m) OP3(0x6e20fc00, d, n, m)
#define FMAX4S(d, n, m) OP3(0x4e20f400, d, n, m)
#define FMIN4S(d, n, m) OP3(0x4ea0f400, d, n, m)
#define FCMEQ4S(d, n, m) OP3(0x4e20e400, d, n, m)

#define FADD2D(d, n, m) OP3(0x4e60d400, d, n, m)
#define FMUL2D(d, n, m) OP3(0x6e60dc00, d, n, m)
#define FDIV2D(d, n, m) OP3(0x6e60fc00, d, n, m)
#define FMAX2D(d, n, m) OP3(0x4e60f400, d, n, m)
#define FMIN2D(d, n, m) OP3(0x4ee0f400, d, n, m)
#define FCMEQ2D(d, n, m) OP3(0x4e60e400, d, n, m)

#define FCVTL(d, n) OP2(0x0e217800, d, n) // the lower four halves to single
#define FCVTL2(d, n) OP2(0x4e217800, d, n) // the upper
#define FCVTN(d, n) OP2(0x0e216800, d, n) // to halves, into the lower four
#define FCVTN2(d, n) OP2(0x4e216800, d, n) // the upper

#define ADD4S(d, n, m) OP3(0x4ea08400, d, n, m)
#define ADD2D(d, n, m) OP3(0x4ee08400, d, n, m)
#define MUL4S(d, n, m) OP3(0x4ea09c00, d, n, m)
#define SMAX4S(d, n, m) OP3(0x4ea06400, d, n, m)
#define SMIN4S(d, n, m) OP3(0x4ea06c00, d, n, m)
#define AND16B(d, n, m) OP3(0x4e201c00, d, n, m)
#define BIF16B(d, n, m) OP3(0x6ee01c00, d, n, m) // n's bits where m's are 0
#define SHL4S16(d, n) OP2(0x4f305400, d, n) // by 16
#define USHR4S16(d, n) OP2(0x6f300400, d, n) // by 16
#define SRI4S16(d, n) OP2(0x6f304400, d, n) // by 16, under d's upper halves

// Floats: halves accumulate in single precision, in A and B.

#define NAN32 \
	MOVD $0x7fc00000, R9 \
	VDUP R9, V31.S4

#define NAN64 \
	MOVD $0x7ff8000000000000, R9 \
	VDUP R9, V31.D2

#define WORLD32 \
	SCVTFS R2, F30 \
	VDUP V30.S[0], V30.S4

#define WORLD64 \
	SCVTFD R2, F30 \
	VDUP V30.D[0], V30.D2

// A NaN is the only number that is not equal to itself.
#define CANON32(A) \
	FCMEQ4S(16, A, A) \
	BIF16B(A, 31, 16)

#define CANON64(A) \
	FCMEQ2D(16, A, A) \
	BIF16B(A, 31, 16)

#define CANON_HALF(A, B) \
	CANON32(A) \
	CANON32(B)

#define MEAN_HALF(A, B) \
	FDIV4S(A, A, 30) \
	FDIV4S(B, B, 30)
