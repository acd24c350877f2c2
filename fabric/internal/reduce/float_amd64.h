// Single precision, in which halves accumulate too, and double: the same, but for the width.

#define NAN32 \
	MOVL $0x7fc00000, AX \
	VMOVD AX, X15 \
	VPBROADCASTD X15, Y15

#define NAN64 \
	MOVQ $0x7ff8000000000000, AX \
	VMOVQ AX, X15 \
	VPBROADCASTQ X15, Y15

#define WORLD32 \
	VCVTSI2SSQ CX, X11, X11 \
	VBROADCASTSS X11, Y11

#define WORLD64 \
	VCVTSI2SDQ CX, X11, X11 \
	VBROADCASTSD X11, Y11

// A NaN is the only number unordered with itself.
#define CANON32(A) \
	VCMPPS $3, A, A, Y8 \
	VBLENDVPS Y8, Y15, A, A

#define CANON64(A) \
	VCMPPD $3, A, A, Y8 \
	VBLENDVPD Y8, Y15, A, A

// The instruction gives its second operand for two zeros and for a NaN. Of both orders, the OR is the smaller zero and a
// NaN if one was; the AND is the larger zero, and all bits set where the two are unordered make the NaN.
#define MAX32(B, A) \
	VMAXPS B, A, Y8 \
	VMAXPS A, B, Y9 \
	VANDPS Y8, Y9, Y9 \
	VCMPPS $3, B, A, A \
	VORPS Y9, A, A

#define MIN32(B, A) \
	VMINPS B, A, Y8 \
	VMINPS A, B, Y9 \
	VORPS Y8, Y9, A

#define MAX64(B, A) \
	VMAXPD B, A, Y8 \
	VMAXPD A, B, Y9 \
	VANDPD Y8, Y9, Y9 \
	VCMPPD $3, B, A, A \
	VORPD Y9, A, A

#define MIN64(B, A) \
	VMINPD B, A, Y8 \
	VMINPD A, B, Y9 \
	VORPD Y8, Y9, A

// Halves, in A and B.

#define CANON_HALF(A, B) \
	CANON32(A) \
	CANON32(B)

#define MEAN_HALF(A, B) \
	VDIVPS Y11, A, A \
	VDIVPS Y11, B, B
