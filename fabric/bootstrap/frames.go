package bootstrap

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// A control frame: u32 payload bytes, u8 type, three zero bytes, payload, 16-byte MAC.
const (
	frameHeader = 8
	frameMAC    = 16
	maxPayload  = MaxMessage + 64
)

type frameType uint8

const (
	frameJoin        frameType = iota + 1 // dialer's first: what it was opened with
	frameStart                            // rank 0's answer once all are there: the table of ranks
	frameRunning                          // rank 0's answer to one that comes when the group is already running
	frameBeat                             // sign of life, with the sender's progress
	frameReport                           // to rank 0: what a rank saw
	frameVerdict                          // the group's cause
	frameRecords                          // to rank 0, after a verdict: the last calls
	frameGoodbye                          // the sender leaves; nothing follows
	frameLeft                             // from rank 0: another rank has left
	frameGather                           // to rank 0: a blob
	frameGathered                         // from rank 0: one rank's blob
	frameMessage                          // an engine's message
	frameCredit                           // messages were taken: their bytes may be sent again
	frameEnter                            // to rank 0: this rank is in the barrier
	frameRelease                          // from rank 0: all are
	frameSubGather                        // to rank 0: a blob of a sub-group's member
	frameSubGathered                      // from rank 0: one member's blob
	frameSubReport                        // to rank 0: what a member of an isolated sub-group saw
	frameSubVerdict                       // from rank 0: that sub-group's cause
	frameSubLeft                          // to rank 0: a member has left a sub-group
	frameTaken                            // how much of the other end's stream has come
	framePath                             // first on a further path: where in the stream it begins
	frameEnd                              // none: the first invalid value
)

var errFrame = errors.New("bad control frame")

// seal authenticates the frames of one direction of one connection, by whichever paths they come. The counter is
// implicit, so a frame that is lost, repeated or moved fails.
type seal struct {
	mac       hash.Hash
	direction string
	count     uint64
	sum       [sha256.Size]byte
}

func newSeal(key []byte, direction string) *seal {
	return &seal{mac: hmac.New(sha256.New, key), direction: direction}
}

func (s *seal) next(frame []byte) []byte {
	var count [8]byte
	binary.LittleEndian.PutUint64(count[:], s.count)
	s.count++
	s.mac.Reset()
	s.mac.Write([]byte(s.direction))
	s.mac.Write(count[:])
	s.mac.Write(frame)
	return s.mac.Sum(s.sum[:0])[:frameMAC]
}

// append adds a sealed frame to dst.
func (s *seal) append(dst []byte, t frameType, payload []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = append(dst, byte(t), 0, 0, 0)
	dst = append(dst, payload...)
	return append(dst, s.next(dst[start:])...)
}

// open takes the first frame of b. size 0 means that more bytes are needed. The payload aliases b.
func (s *seal) open(b []byte) (t frameType, payload []byte, size int, err error) {
	if len(b) < frameHeader {
		return 0, nil, 0, nil
	}
	n, err := checkHeader(b)
	if err != nil {
		return 0, nil, 0, err
	}
	size = frameHeader + n + frameMAC
	if len(b) < size {
		return 0, nil, 0, nil
	}
	if !hmac.Equal(s.next(b[:frameHeader+n]), b[frameHeader+n:size]) {
		return 0, nil, 0, fmt.Errorf("%w: wrong MAC", errFrame)
	}
	return frameType(b[4]), b[frameHeader : frameHeader+n], size, nil
}

func checkHeader(b []byte) (payload int, err error) {
	n := binary.LittleEndian.Uint32(b)
	if n > maxPayload {
		return 0, fmt.Errorf("%w: it says %d bytes; at most %d are allowed", errFrame, n, maxPayload)
	}
	if b[4] == 0 || b[4] >= byte(frameEnd) || b[5] != 0 || b[6] != 0 || b[7] != 0 {
		return 0, fmt.Errorf("%w: unknown type %x", errFrame, b[4:8])
	}
	return int(n), nil
}

func writeFrame(w io.Writer, s *seal, t frameType, payload []byte) error {
	_, err := w.Write(s.append(nil, t, payload))
	return err
}

// readFrame blocks for one whole frame, and never reads past it.
func readFrame(r io.Reader, s *seal) (frameType, []byte, error) {
	b := make([]byte, frameHeader)
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, nil, err
	}
	n, err := checkHeader(b)
	if err != nil {
		return 0, nil, err
	}
	b = append(b, make([]byte, n+frameMAC)...)
	if _, err := io.ReadFull(r, b[frameHeader:]); err != nil {
		return 0, nil, err
	}
	t, payload, _, err := s.open(b)
	return t, payload, err
}
