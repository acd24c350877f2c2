package roce

import (
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// A share is what one end of a lane has in its region: words and offers that the peer writes, the ring that it writes, and the
// staging from which this end sends. docs/roce.md has the table.
const (
	line        = 128 // bytes that are kept to one writer
	tailAt      = 0
	creditAt    = line
	offersAt    = 2 * line
	offerBytes  = line     // what an offer says
	offerRoom   = 2 * line // and its flag, on a line of its own
	offersOutAt = offersAt + offers*offerRoom
	wordAt      = offersOutAt + offers*offerBytes // a word on its way out, which is copied when it is posted
	ringAt      = wordAt + line
	offers      = 2 // one a step
)

// geometry is how large rings are: alike on all ranks.
type geometry struct {
	slots   int // a power of two
	payload int // bytes of a slot behind its header
}

func (g geometry) slotBytes() int { return frame.Size + g.payload }

func (g geometry) shareBytes() int {
	return (ringAt + 2*g.slots*g.slotBytes() + line - 1) &^ (line - 1)
}

// slotAt is where the slot of frame n lies in a share.
func (g geometry) slotAt(n uint64) int { return ringAt + int(n%uint64(g.slots))*g.slotBytes() }

// stagingAt is where it is staged.
func (g geometry) stagingAt(n uint64) int { return g.slotAt(n) + g.slots*g.slotBytes() }

func offerAt(step int) int    { return offersAt + step*offerRoom }
func flagAt(step int) int     { return offerAt(step) + offerBytes }
func offerOutAt(step int) int { return offersOutAt + step*offerBytes }

// share is one, in memory.
type share struct {
	geometry
	mem   []byte
	words []uint64
	at    uint64 // address of mem
	lkey  uint32
	rkey  uint32
}

func newShare(g geometry, mem []byte, r Region) (share, error) {
	words, err := fabric.Words(mem[:ringAt])
	return share{g, mem, words, address(mem), r.LKey, r.RKey}, err
}

func (s *share) tail() uint64            { return atomic.LoadUint64(&s.words[tailAt/8]) }
func (s *share) credit() uint64          { return atomic.LoadUint64(&s.words[creditAt/8]) }
func (s *share) flag(step int) uint64    { return atomic.LoadUint64(&s.words[flagAt(step)/8]) }
func (s *share) slot(n uint64) []byte    { return s.mem[s.slotAt(n):][:s.slotBytes():s.slotBytes()] }
func (s *share) staging(n uint64) []byte { return s.mem[s.stagingAt(n):][:s.slotBytes():s.slotBytes()] }

// word readies a word for an inline request.
func (s *share) word(v uint64) Piece {
	s.words[wordAt/8] = v
	return s.piece(wordAt, 8)
}

// piece is bytes of the share, to send from.
func (s *share) piece(at, bytes int) Piece {
	return Piece{Addr: s.at + uint64(at), Bytes: uint32(bytes), LKey: s.lkey}
}
