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
	Magic = 0x31464648 // "HFF1"
	// NoRank stands where a header names neither root nor peer.
	NoRank = 0xffff

	flagCRC = 1
)

// Step says which leg of an operation a frame belongs to.
type Step uint8

const (
	Contribution Step = iota // what a rank brings
	Result                   // what a rank has combined for the others
)

// Header is one frame's header. Two ranks that are in the same call expect equal headers, field for field.
type Header struct {
	Session uint64 // of this Open
	Group   uint32 // of the group's name and channel
	Class   fabric.Class
	Op      fabric.Op
	DType   fabric.DType
	Reduce  fabric.ReduceOp
	Step    Step
	Verify  bool   // Seal has filled the two sums
	Rank    uint16 // Broadcast: the root; Pair: the receiver; NoRank elsewhere
	Seq     uint64
	Total   uint64 // bytes of the call, as its ranks compare them
	Hash    uint64 // of the lengths, or the bytes of a row
	Part    uint32 // of the step, from 0
	Payload uint32 // bytes that follow
}

// Put writes h into b.
func (h *Header) Put(b *[Size]byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], Magic)
	le.PutUint32(b[4:], h.Group)
	le.PutUint64(b[8:], h.Session)
	le.PutUint64(b[16:], h.Seq)
	le.PutUint64(b[24:], h.Total)
	le.PutUint64(b[32:], h.Hash)
	le.PutUint32(b[40:], h.Payload)
	le.PutUint32(b[44:], h.Part)
	flags := uint8(0)
	if h.Verify {
		flags = flagCRC
	}
	b[48], b[49], b[50], b[51], b[52], b[53] = uint8(h.Class), uint8(h.Op), uint8(h.DType), uint8(h.Reduce), uint8(h.Step), flags
	le.PutUint16(b[54:], h.Rank)
	le.PutUint64(b[sumsAt:], 0)
}

// Parse reads a header. It refuses what no version of this package writes; what the fields should be is the caller's
// to compare.
func Parse(b *[Size]byte) (Header, error) {
	le := binary.LittleEndian
	if m := le.Uint32(b[0:]); m != Magic {
		return Header{}, fmt.Errorf("frame begins with %#08x, not %#08x", m, uint32(Magic))
	}
	h := Header{
		Group: le.Uint32(b[4:]), Session: le.Uint64(b[8:]), Seq: le.Uint64(b[16:]), Total: le.Uint64(b[24:]),
		Hash: le.Uint64(b[32:]), Payload: le.Uint32(b[40:]), Part: le.Uint32(b[44:]),
		Class: fabric.Class(b[48]), Op: fabric.Op(b[49]), DType: fabric.DType(b[50]), Reduce: fabric.ReduceOp(b[51]),
		Step: Step(b[52]), Verify: b[53]&flagCRC != 0, Rank: le.Uint16(b[54:]),
	}
	switch {
	case b[53]&^flagCRC != 0:
		return Header{}, fmt.Errorf("frame has flags %#02x that this version does not know", b[53])
	case !h.Verify && le.Uint64(b[sumsAt:]) != 0:
		return Header{}, fmt.Errorf("frame has sums and no flag that says so")
	case !h.Op.Valid() || h.Class != h.Op.Class():
		return Header{}, fmt.Errorf("frame of %v in sequence %v", h.Op, h.Class)
	case h.Op.Reduces() != (h.DType != 0 || h.Reduce != 0) || (h.Op.Reduces() && !h.Reduce.Takes(h.DType)):
		return Header{}, fmt.Errorf("frame of %v with dtype %d and reduction %d", h.Op, h.DType, h.Reduce)
	case h.Step > Result:
		return Header{}, fmt.Errorf("frame of step %d", h.Step)
	}
	return h, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The header ends with two sums: of the payload, then of the header up to there.
const sumsAt, headerSumAt = 56, 60

// Seal writes the CRC32C of payload and of the header into b.
func Seal(b *[Size]byte, payload []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[sumsAt:], crc32.Checksum(payload, castagnoli))
	le.PutUint32(b[headerSumAt:], crc32.Checksum(b[:headerSumAt], castagnoli))
}

// HeaderIntact says whether a sealed header is as it was sent.
func HeaderIntact(b *[Size]byte) bool {
	return binary.LittleEndian.Uint32(b[headerSumAt:]) == crc32.Checksum(b[:headerSumAt], castagnoli)
}

// PayloadIntact says whether the payload is as it was when b was sealed.
func PayloadIntact(b *[Size]byte, payload []byte) bool {
	return binary.LittleEndian.Uint32(b[sumsAt:]) == crc32.Checksum(payload, castagnoli)
}

// Equal compares all of two headers but their sums.
func Equal(a, b *[Size]byte) bool { return [sumsAt]byte(a[:sumsAt]) == [sumsAt]byte(b[:sumsAt]) }

// Describe names the call that a header belongs to, as errors show it.
func (h *Header) Describe() string {
	s := fmt.Sprintf("%v seq %d, %d bytes", h.Op, h.Seq, h.Total)
	if h.Op.Reduces() {
		s += fmt.Sprintf(", %v %v", h.DType, h.Reduce)
	}
	if h.Op == fabric.Broadcast {
		s += fmt.Sprintf(", root %d", h.Rank)
	}
	if h.Hash != 0 {
		s += fmt.Sprintf(", lengths %#x", h.Hash)
	}
	if h.Part != 0 || h.Step != Contribution {
		s += fmt.Sprintf(", step %d part %d of %d bytes", h.Step, h.Part, h.Payload)
	}
	return s
}
