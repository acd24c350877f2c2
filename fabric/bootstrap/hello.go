package bootstrap

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// The records of the hello. Their sizes, magics and the place of every field are the same in every version, so that any
// two versions can authenticate each other and then say which one each speaks.
const (
	wireVersion = 2

	dialerMagic   = "hipfabr>"
	listenerMagic = "hipfabr<"

	helloSize     = 128
	challengeSize = 40
	proofSize     = sha256.Size
	replySize     = 64

	nonceSize   = 32
	sessionSize = 16
	channelSize = 16
)

type role uint8

const (
	roleControl role = 1
	roleData    role = 2
	rolePath    role = 3 // a further way of a control connection
)

// hello is the first record: who dials whom, for what. Nothing in it is believed before the proof.
type hello struct {
	version    uint16
	role       role
	rank, peer uint16 // the dialer's and the listener's
	lane       uint16 // data only
	generation uint16 // data and path, as the rail and the session
	rail       uint8
	channel    [channelSize]byte // data only; zero-padded name
	nonce      [nonceSize]byte
	session    [sessionSize]byte
	group      [sha256.Size]byte // hash of the group's name
}

func (h *hello) encode() []byte {
	b := make([]byte, helloSize)
	copy(b, dialerMagic)
	binary.LittleEndian.PutUint16(b[8:], h.version)
	b[10] = byte(h.role)
	binary.LittleEndian.PutUint16(b[12:], h.rank)
	binary.LittleEndian.PutUint16(b[14:], h.peer)
	binary.LittleEndian.PutUint16(b[16:], h.lane)
	binary.LittleEndian.PutUint16(b[18:], h.generation)
	b[11] = h.rail
	copy(b[20:], h.channel[:])
	copy(b[36:], h.nonce[:])
	copy(b[68:], h.session[:])
	copy(b[84:], h.group[:])
	return b
}

func decodeHello(b []byte) (hello, error) {
	var h hello
	if len(b) != helloSize {
		return h, fmt.Errorf("a hello of %d bytes; it has %d", len(b), helloSize)
	}
	if string(b[:8]) != dialerMagic {
		return h, fmt.Errorf("%w: it said %q", errStranger, b[:8])
	}
	h.version = binary.LittleEndian.Uint16(b[8:])
	h.role = role(b[10])
	h.rank = binary.LittleEndian.Uint16(b[12:])
	h.peer = binary.LittleEndian.Uint16(b[14:])
	h.lane = binary.LittleEndian.Uint16(b[16:])
	h.generation = binary.LittleEndian.Uint16(b[18:])
	h.rail = b[11]
	copy(h.channel[:], b[20:])
	copy(h.nonce[:], b[36:])
	copy(h.session[:], b[68:])
	copy(h.group[:], b[84:])
	return h, nil
}

// binding is what the keys of a data connection, and of a further path, depend on beside the secret and the nonces.
func (h *hello) binding() []byte {
	if h.role != roleData && h.role != rolePath {
		return nil
	}
	b := make([]byte, 0, sessionSize+sha256.Size+9+channelSize)
	b = append(b, h.session[:]...)
	b = append(b, h.group[:]...)
	b = binary.LittleEndian.AppendUint16(b, h.rank)
	b = binary.LittleEndian.AppendUint16(b, h.peer)
	b = binary.LittleEndian.AppendUint16(b, h.lane)
	b = binary.LittleEndian.AppendUint16(b, h.generation)
	b = append(b, h.rail)
	return append(b, h.channel[:]...)
}

func encodeChallenge(nonce [nonceSize]byte) []byte {
	return append([]byte(listenerMagic), nonce[:]...)
}

func decodeChallenge(b []byte) (nonce [nonceSize]byte, err error) {
	if len(b) != challengeSize || string(b[:8]) != listenerMagic {
		return nonce, fmt.Errorf("%w: it said %q", errStranger, b[:min(8, len(b))])
	}
	copy(nonce[:], b[8:])
	return nonce, nil
}

// reply ends the hello: one fixed refusal, or an acceptance that carries the listener's version, the session and a MAC.
type reply struct {
	version uint16
	session [sessionSize]byte
}

const (
	replyAccept  = 1
	replyRefused = 2
	replySigned  = replySize - sha256.Size // bytes before the MAC
)

func refusal() []byte {
	b := make([]byte, replySize)
	copy(b, listenerMagic)
	b[8] = replyRefused
	return b
}

// encode gives the reply up to its MAC.
func (r *reply) encode() []byte {
	b := make([]byte, replySigned, replySize)
	copy(b, listenerMagic)
	b[8] = replyAccept
	binary.LittleEndian.PutUint16(b[10:], r.version)
	copy(b[16:], r.session[:])
	return b
}

func decodeReply(b []byte) (reply, error) {
	var r reply
	switch {
	case len(b) != replySize || string(b[:8]) != listenerMagic:
		return r, fmt.Errorf("%w: it said %q", errStranger, b[:min(8, len(b))])
	case bytes.Equal(b, refusal()):
		return r, errRefused
	case b[8] != replyAccept:
		return r, fmt.Errorf("%w: its reply is of kind %d", errStranger, b[8])
	}
	r.version = binary.LittleEndian.Uint16(b[10:])
	copy(r.session[:], b[16:])
	return r, nil
}
