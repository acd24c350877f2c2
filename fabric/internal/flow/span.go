package flow

import "github.com/hipfabric/hipfabric/fabric/internal/frame"

// Span is a run of bytes that goes one way between this rank and a peer in one step of a call, cut into parts: all of a
// small one, equal chunks and a rest of a larger one. A part is the payload of one frame.
type Span struct {
	Buf   []byte
	Seq   uint64
	Total uint64 // as both ends compare it
	Rank  uint16 // of the header
	Step  frame.Step

	Chunk int // bytes of every part but the last
	Parts int
	Begun int // out: parts that a lane has taken
	Ended int // parts that were sent, or have come, whole
	Lost  int // out: parts whose lane died
	// Marks has one byte a part, where a pair has several lanes. Out: 1 + the lane that took it, 0 when that lane is
	// dead. In: 1 once it has come.
	Marks []uint8
	first int // in: parts from the first on without a hole
}

// At is the payload of a part.
func (s *Span) At(part int) []byte {
	from := part * s.Chunk
	return s.Buf[from:min(len(s.Buf), from+s.Chunk)]
}

// Finished says whether all parts have ended.
func (s *Span) Finished() bool { return s.Ended == s.Parts }

// contiguous is how many bytes have come from the first on without a hole.
func (s *Span) contiguous() int { return min(s.first*s.Chunk, len(s.Buf)) }

// Due says whether a part has not come yet, and may come now: without marks parts come in order.
func (s *Span) Due(part int) bool {
	if s.Marks == nil {
		return part == s.Ended
	}
	return s.Marks[part] == 0
}

// came books a part that has come.
func (s *Span) came(part int) {
	s.Ended++
	if s.Marks == nil {
		s.first = s.Ended
		return
	}
	s.Marks[part] = 1
	for s.first < s.Parts && s.Marks[s.first] != 0 {
		s.first++
	}
}

// NextLost is the first part whose lane died.
func (s *Span) NextLost() int {
	for part, lane := range s.Marks[:s.Begun] {
		if lane == 0 {
			return part
		}
	}
	return -1
}
