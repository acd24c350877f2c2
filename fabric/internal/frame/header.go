package frame

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	// Size is the bytes of every header.
	Size = 64
	// Magic begins every header; its last byte is the version of the layout.
	Magic = 0x3246 // "F2"
	// NoRank stands where a header names neither root nor peer.
	NoRank = 0xffff
)

// Kind is what a frame is for.
type Kind uint8

const (
	Data Kind = iota // bytes of a call
	Ack              // only its Ack counts
	Down             // a lane is dead: Part is its index, Seq its generation. What was sent on it may come again
	kinds
)

// Step says which leg of an operation a frame belongs to.
type Step uint8

const (
	Contribution Step = iota // what a rank brings
	Result                   // what a rank has combined for the others
)

// The byte of small fields: bit 0 says that the call is of a pair, 1 the step, 2 whether there are sums, 3 and 4 the kind.
const (
	bitPair   = 0
	bitStep   = 1
	bitVerify = 2
	bitKind   = 3
	kindMask  = 3
	usedBits  = 1<<bitPair | 1<<bitStep | 1<<bitVerify | kindMask<<bitKind
)

// Where fields lie that are read or written alone. The header ends with two sums: of the payload, then of the header up
// to there.
const orderAt, ackAt, partAt, payloadAt, sumsAt, headerSum = 16, 20, 48, 52, 56, 60

// Header is one frame's header. Two ranks that are in the same call expect equal headers, field for field, Ack apart.
type Header struct {
	Binding uint64 // to this Open, group and channel
	Kind    Kind
	Class   fabric.Class
	Op      fabric.Op
	DType   fabric.DType
	Reduce  fabric.ReduceOp
	Step    Step
	Verify  bool   // Seal has filled the two sums
	Rank    uint16 // Broadcast: the root; Pair: the receiver; NoRank elsewhere
	Order   uint32 // of the call, among those that bring bytes from the sender to the receiver, from 1
	Ack     uint32 // the sender has all of the receiver's calls up to this Order; 0 where nothing is acknowledged
	Seq     uint64
	Total   uint64 // bytes of the call, as its ranks compare them
	Hash    uint64 // of the lengths, or the bytes of a row, with the part of the call: fabric.Call's
	Part    uint32 // of the step, from 0
	Payload uint32 // bytes that follow
}

// Put writes h into b.
func (h *Header) Put(b *[Size]byte) {
	le := binary.LittleEndian
	bits := uint8(h.Step)<<bitStep | uint8(h.Kind)<<bitKind
	if h.Class == fabric.Pair {
		bits |= 1 << bitPair
	}
	if h.Verify {
		bits |= 1 << bitVerify
	}
	le.PutUint16(b[0:], Magic)
	b[2], b[3], b[4], b[5] = uint8(h.Op), uint8(h.DType), uint8(h.Reduce), bits
	le.PutUint16(b[6:], h.Rank)
	le.PutUint64(b[8:], h.Binding)
	le.PutUint32(b[orderAt:], h.Order)
	le.PutUint32(b[ackAt:], h.Ack)
	le.PutUint64(b[24:], h.Seq)
	le.PutUint64(b[32:], h.Total)
	le.PutUint64(b[40:], h.Hash)
	le.PutUint32(b[partAt:], h.Part)
	le.PutUint32(b[payloadAt:], h.Payload)
	le.PutUint64(b[sumsAt:], 0)
}

// Parse reads a header. It refuses what no version of this package writes; what the fields should be is the caller's
// to compare.
func Parse(b *[Size]byte) (Header, error) {
	le := binary.LittleEndian
	if m := le.Uint16(b[0:]); m != Magic {
		return Header{}, fmt.Errorf("frame begins with %#04x, not %#04x", m, uint16(Magic))
	}
	bits := b[5]
	h := Header{
		Kind: Kind(bits >> bitKind & kindMask), Class: fabric.Class(bits >> bitPair & 1), Step: Step(bits >> bitStep & 1), Verify: bits>>bitVerify&1 != 0,
		Op: fabric.Op(b[2]), DType: fabric.DType(b[3]), Reduce: fabric.ReduceOp(b[4]), Rank: le.Uint16(b[6:]),
		Binding: le.Uint64(b[8:]), Order: le.Uint32(b[orderAt:]), Ack: AckOf(b), Seq: le.Uint64(b[24:]),
		Total: le.Uint64(b[32:]), Hash: le.Uint64(b[40:]), Part: le.Uint32(b[partAt:]), Payload: le.Uint32(b[payloadAt:]),
	}
	if h.Kind == Data {
		h.Class = fabric.Group + fabric.Class(bits>>bitPair&1)
	}
	switch {
	case bits&^usedBits != 0 || h.Kind >= kinds:
		return Header{}, fmt.Errorf("frame has bits %#02x that this version does not know", bits)
	case !h.Verify && le.Uint64(b[sumsAt:]) != 0:
		return Header{}, fmt.Errorf("frame has sums and no bit that says so")
	case h.Kind != Data:
		return h, h.checkNotice(bits>>bitPair&1 != 0)
	case !h.Op.Valid() || h.Class != h.Op.Class():
		return Header{}, fmt.Errorf("frame of %v in sequence %v", h.Op, h.Class)
	case h.Op.Reduces() != (h.DType != 0 || h.Reduce != 0) || (h.Op.Reduces() && !h.Reduce.Takes(h.DType)):
		return Header{}, fmt.Errorf("frame of %v with dtype %d and reduction %d", h.Op, h.DType, h.Reduce)
	}
	return h, nil
}

// checkNotice refuses what has no meaning outside a call.
func (h *Header) checkNotice(pair bool) error {
	plain := Header{Binding: h.Binding, Kind: h.Kind, Verify: h.Verify, Rank: NoRank, Ack: h.Ack}
	if h.Kind == Down {
		plain.Part, plain.Seq = h.Part, h.Seq
	}
	if *h != plain || pair {
		return fmt.Errorf("frame of kind %d with fields of a call", h.Kind)
	}
	return nil
}

// Peek reads what says where a data frame's payload belongs, before anything else is looked at.
func Peek(b *[Size]byte) (kind Kind, order uint32, step Step, part, payload uint32) {
	le := binary.LittleEndian
	return Kind(b[5] >> bitKind & kindMask), le.Uint32(b[orderAt:]), Step(b[5] >> bitStep & 1), le.Uint32(b[partAt:]), le.Uint32(b[payloadAt:])
}

// AckOf reads the acknowledgement, the one field that ranks in the same call do not share.
func AckOf(b *[Size]byte) uint32 { return binary.LittleEndian.Uint32(b[ackAt:]) }

// SetAck writes it.
func SetAck(b *[Size]byte, ack uint32) { binary.LittleEndian.PutUint32(b[ackAt:], ack) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal writes the CRC32C of payload and of the header into b.
func Seal(b *[Size]byte, payload []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[sumsAt:], crc32.Checksum(payload, castagnoli))
	le.PutUint32(b[headerSum:], crc32.Checksum(b[:headerSum], castagnoli))
}

// HeaderIntact says whether a sealed header is as it was sent.
func HeaderIntact(b *[Size]byte) bool {
	return binary.LittleEndian.Uint32(b[headerSum:]) == crc32.Checksum(b[:headerSum], castagnoli)
}

// PayloadIntact says whether the payload is as it was when b was sealed.
func PayloadIntact(b *[Size]byte, payload []byte) bool {
	return binary.LittleEndian.Uint32(b[sumsAt:]) == crc32.Checksum(payload, castagnoli)
}

// Equal compares all of two headers but their acknowledgements and their sums.
func Equal(a, b *[Size]byte) bool {
	return [ackAt]byte(a[:ackAt]) == [ackAt]byte(b[:ackAt]) && [sumsAt - ackAt - 4]byte(a[ackAt+4:]) == [sumsAt - ackAt - 4]byte(b[ackAt+4:])
}

// Describe names the call that a header belongs to, as errors show it.
func (h *Header) Describe() string {
	if h.Kind != Data {
		return fmt.Sprintf("a notice of kind %d", h.Kind)
	}
	s := fmt.Sprintf("%v seq %d, %d bytes", h.Op, h.Seq, h.Total)
	if h.Op.Reduces() {
		s += fmt.Sprintf(", %v %v", h.DType, h.Reduce)
	}
	if h.Op == fabric.Broadcast {
		s += fmt.Sprintf(", root %d", h.Rank)
	}
	part := h.Hash >> fabric.HashPartShift
	rest := h.Hash ^ part<<fabric.HashPartShift
	switch {
	case h.Op == fabric.AllGatherV:
		s += fmt.Sprintf(", lengths %#x", h.Hash)
		part = 0
	case h.Op == fabric.AllGatherRows:
		s += fmt.Sprintf(", rows of %d", rest)
	case rest != 0:
		s += fmt.Sprintf(", hash %#x", rest)
	}
	if part != 0 {
		s += fmt.Sprintf(", part %d of the call", part)
	}
	if h.Part != 0 || h.Step != Contribution {
		s += fmt.Sprintf(", step %d part %d of %d bytes", h.Step, h.Part, h.Payload)
	}
	return s
}
