package roce

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// lane carries frames in order to a peer and from it. docs/roce.md says why no slot is overwritten before it is read.
type lane struct {
	*hop
	index int // among the pair's, at both ends
	peer  int
	relay bool // a third rank's proxy passes the frames on

	sent   uint64 // frames put into the peer's ring
	credit uint64 // of them, those that the peer has taken, as far as is known
	head   uint64 // frames of the peer's that were taken
	toldAt uint64 // head, as the peer knows it
	lent   uint64 // request up to which memory of the caller's is read
	parted bool   // the peer has said goodbye
	header [frame.Size]byte
	count  counters
}

// open says whether a frame can be sent.
func (l *lane) open() bool { return l.sent-l.credit < uint64(l.share.slots) && l.room() }

// refresh takes the peer's credit word.
func (l *lane) refresh() error {
	c := l.share.credit()
	if c <= l.credit {
		return nil
	}
	if c > l.sent {
		return l.cause(fmt.Sprintf("rank %d gives credit for %d frames, and was sent %d", l.peer, c, l.sent))
	}
	l.credit = c
	return nil
}

// heard takes the credit in a header, which is its low bits.
func (l *lane) heard(ack uint32) error {
	ahead := int32(ack - uint32(l.credit))
	if ahead <= 0 {
		return nil
	}
	if uint64(ahead) > l.sent-l.credit {
		return l.cause(fmt.Sprintf("rank %d acknowledges frame %d, and was sent %d", l.peer, l.credit+uint64(ahead), l.sent))
	}
	l.credit += uint64(ahead)
	return nil
}

// stage gives the header of the next frame to send, and the room behind it.
func (l *lane) stage() (h *[frame.Size]byte, payload []byte) {
	s := l.share.staging(l.sent + 1)
	return (*[frame.Size]byte)(s), s[frame.Size:]
}

// acknowledge writes credit into the header of the next frame.
func (l *lane) acknowledge(h *[frame.Size]byte) {
	frame.SetAck(h, uint32(l.head))
	l.toldAt = l.head
}

// staged is the payload that was staged with the next frame, by itself.
func (l *lane) staged(bytes int) Piece {
	return l.share.piece(l.share.stagingAt(l.sent+1)+frame.Size, bytes)
}

// send posts the frame that was staged with so many bytes of payload, and more where that is not there; before requests of the chain go first.
// lent says that one of them reads memory of the caller's.
func (l *lane) send(bytes int, more Piece, before int, lent bool) error {
	n := l.sent + 1
	pieces := [2]Piece{l.share.piece(l.share.stagingAt(n), frame.Size+bytes), more}
	if err := l.sendFrame(n, pieces, before, lent); err != nil {
		return err
	}
	l.sent = n
	if lent {
		l.lent = l.posted
	}
	return nil
}

// arrival is the header of the next frame, and its payload's room, where one has come.
func (l *lane) arrival() (payload []byte, there bool, err error) {
	t := l.tail()
	if t == l.head {
		return nil, false, nil
	}
	if t-l.head > uint64(l.share.slots) {
		return nil, false, l.cause(fmt.Sprintf("rank %d claims %d frames where %d were taken and %d have room", l.peer, t, l.head, l.share.slots))
	}
	s := l.share.slot(l.head + 1)
	copy(l.header[:], s) // once: what is checked is what is used
	return s[frame.Size:], true, nil
}

// took is for a frame that was read.
func (l *lane) took() error {
	l.head++
	if err := l.restock(); err != nil {
		return err
	}
	return l.tell()
}

// tell gives credit that no header carries, once half of the slots are untold. Where the queue is full it is for a later turn.
func (l *lane) tell() error {
	if l.head-l.toldAt < uint64(l.share.slots/2) || !l.room() {
		return nil
	}
	l.toldAt = l.head
	l.chain[0] = l.word(creditAt, l.head)
	return l.post(1, false)
}

// returned says whether the caller's memory is no more read.
func (l *lane) returned() bool { return l.completed >= l.lent }
