package bootstrap

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

var (
	errStranger = errors.New("not a hipfabric hello")
	errRefused  = errors.New("the proof was refused")
	errProof    = errors.New("wrong proof")
)

// Directions of keys. A MAC made for one direction never verifies in the other, so reflection fails.
const (
	fromDialer   = "dialer"
	fromListener = "listener"
)

// exchange is what both sides know during a hello: everything said so far and the key material.
type exchange struct {
	transcript []byte
	prk        []byte
	role       role
	binding    []byte
}

func newExchange(secret []byte, h *hello, binding []byte, first, challenge []byte) (*exchange, error) {
	salt := append(append([]byte(nil), h.nonce[:]...), challenge[len(challenge)-nonceSize:]...)
	prk, err := hkdf.Extract(sha256.New, secret, salt)
	if err != nil {
		return nil, fmt.Errorf("hkdf: %w", err)
	}
	x := &exchange{prk: prk, role: h.role, binding: binding}
	x.say(first)
	x.say(challenge)
	return x, nil
}

func (x *exchange) say(b []byte) { x.transcript = append(x.transcript, b...) }

// key derives a key for one purpose and direction, bound to the role and, for data, to session, group, ranks, channel
// and lane. extra binds it further.
func (x *exchange) key(purpose, direction string, extra []byte) ([]byte, error) {
	info := "hipfabric\x00" + purpose + "\x00" + direction + "\x00" + string([]byte{byte(x.role)}) + string(x.binding) + string(extra)
	key, err := hkdf.Expand(sha256.New, x.prk, info, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("hkdf: %w", err)
	}
	return key, nil
}

// mac authenticates the whole transcript so far.
func (x *exchange) mac(direction string) ([]byte, error) {
	key, err := x.key("hello", direction, nil)
	if err != nil {
		return nil, err
	}
	m := hmac.New(sha256.New, key)
	m.Write(x.transcript)
	return m.Sum(nil), nil
}

// frames derives the keys of the control frames that follow, one a direction, bound to the session.
func (x *exchange) frames(session [sessionSize]byte) (dialer, listener *seal, err error) {
	d, err := x.key("frames", fromDialer, session[:])
	if err != nil {
		return nil, nil, err
	}
	l, err := x.key("frames", fromListener, session[:])
	if err != nil {
		return nil, nil, err
	}
	return newSeal(d, fromDialer), newSeal(l, fromListener), nil
}

// dialHello proves the secret to the listener at the other end of c and checks the listener's own proof. errRefused
// and errProof mean that the secrets differ; errStranger that something else listens there. The caller sets deadlines;
// heard is called once the other end is known to speak the protocol.
func dialHello(c io.ReadWriter, secret []byte, h hello, heard func()) (*exchange, reply, error) {
	rand.Read(h.nonce[:])
	first := h.encode()
	if _, err := c.Write(first); err != nil {
		return nil, reply{}, err
	}
	challenge := make([]byte, challengeSize)
	// The magic alone first here too: another program that answers less, and waits, is told from a silent one.
	if err := readRecord(c, challenge[:8]); err != nil {
		return nil, reply{}, err
	}
	if string(challenge[:8]) != listenerMagic {
		return nil, reply{}, fmt.Errorf("%w: it said %q", errStranger, challenge[:8])
	}
	if err := readRecord(c, challenge[8:]); err != nil {
		return nil, reply{}, err
	}
	if _, err := decodeChallenge(challenge); err != nil {
		return nil, reply{}, err
	}
	heard()
	x, err := newExchange(secret, &h, h.binding(), first, challenge)
	if err != nil {
		return nil, reply{}, err
	}
	proof, err := x.mac(fromDialer)
	if err != nil {
		return nil, reply{}, err
	}
	if _, err := c.Write(proof); err != nil {
		return nil, reply{}, err
	}
	x.say(proof)
	answer := make([]byte, replySize)
	if err := readRecord(c, answer); err != nil {
		return nil, reply{}, err
	}
	r, err := decodeReply(answer)
	if err != nil {
		return nil, reply{}, err
	}
	x.say(answer[:replySigned])
	want, err := x.mac(fromListener)
	if err != nil {
		return nil, reply{}, err
	}
	if !hmac.Equal(want, answer[replySigned:]) {
		return nil, reply{}, errProof
	}
	return x, r, nil
}

// listenHello hears a hello. Until the proof holds it says nothing but the challenge; a wrong proof gets the one fixed
// refusal. binding gives what this listener itself knows of the connection, whatever the hello claims.
func listenHello(c io.ReadWriter, secret []byte, r reply, binding func(hello) []byte) (hello, *exchange, error) {
	first := make([]byte, helloSize)
	// The magic alone first: a stranger that says less than a hello, and waits, is known by it.
	if err := readRecord(c, first[:8]); err != nil {
		return hello{}, nil, err
	}
	if string(first[:8]) != dialerMagic {
		return hello{}, nil, fmt.Errorf("%w: it said %q", errStranger, first[:8])
	}
	if err := readRecord(c, first[8:]); err != nil {
		return hello{}, nil, err
	}
	h, err := decodeHello(first)
	if err != nil {
		return h, nil, err
	}
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	challenge := encodeChallenge(nonce)
	if _, err := c.Write(challenge); err != nil {
		return h, nil, err
	}
	x, err := newExchange(secret, &h, binding(h), first, challenge)
	if err != nil {
		return h, nil, err
	}
	want, err := x.mac(fromDialer)
	if err != nil {
		return h, nil, err
	}
	proof := make([]byte, proofSize)
	if err := readRecord(c, proof); err != nil {
		return h, nil, err
	}
	if !hmac.Equal(want, proof) {
		_, _ = c.Write(refusal())
		return h, nil, errProof
	}
	x.say(proof)
	answer := r.encode()
	x.say(answer)
	mac, err := x.mac(fromListener)
	if err != nil {
		return h, nil, err
	}
	if _, err := c.Write(append(answer, mac...)); err != nil {
		return h, nil, err
	}
	return h, x, nil
}

func readRecord(r io.Reader, b []byte) error {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("closed after %d of %d bytes: %w", n, len(b), err)
	}
	return err
}
