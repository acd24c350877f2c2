package tcp

import "github.com/hipfabric/hipfabric/fabric/internal/frame"

// span is a run of bytes that goes one way between this rank and a peer in one step of a call, cut into parts: all of a
// small one, equal chunks and a rest of a larger one. A part is the payload of one frame.
type span struct {
	buf   []byte
	seq   uint64
	total uint64 // as both ends compare it
	rank  uint16 // of the header
	step  frame.Step

	chunk int // bytes of every part but the last
	parts int
	begun int // out: parts that a lane has taken
	ended int // parts that were sent, or have come, whole
	first int // in: parts from the first on without a hole
	lost  int // out: parts whose lane died
	// marks has one byte a part, where a pair has several lanes. Out: 1 + the lane that took it, 0 when that lane is
	// dead. In: 1 once it has come.
	marks []uint8
}

// cut says how n bytes become parts. Both ends of a pair do it alike, so that a part's number says where it belongs.
func (c *Config) cut(n, lanes int) (chunk, parts int) {
	if n <= c.EagerBytes {
		return n, 1
	}
	chunk = c.ChunkBytes
	if lanes > 1 {
		// Small enough that the last parts of a slow lane do not keep the others waiting.
		even := (n/(lanes*partsPerLane) + chunkAlign - 1) / chunkAlign * chunkAlign
		chunk = min(chunk, max(even, minChunkBytes))
	}
	return chunk, (n + chunk - 1) / chunk
}

// largest is the most bytes that a frame of this group can have.
func (c *Config) largest() int { return max(c.EagerBytes, c.ChunkBytes) }

const (
	partsPerLane  = 16
	minChunkBytes = 64 << 10
	chunkAlign    = 4 << 10
)

// at is the payload of a part.
func (s *span) at(part int) []byte {
	from := part * s.chunk
	return s.buf[from:min(len(s.buf), from+s.chunk)]
}

func (s *span) finished() bool { return s.ended == s.parts }

// contiguous is how many bytes have come from the first on without a hole.
func (s *span) contiguous() int { return min(s.first*s.chunk, len(s.buf)) }

// came books a part that has come.
func (s *span) came(part int) {
	s.ended++
	if s.marks == nil {
		s.first = s.ended
		return
	}
	s.marks[part] = 1
	for s.first < s.parts && s.marks[s.first] != 0 {
		s.first++
	}
}

// nextLost is the first part whose lane died.
func (s *span) nextLost() int {
	for part, lane := range s.marks[:s.begun] {
		if lane == 0 {
			return part
		}
	}
	return -1
}
