package bootstrap

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sides are the results of one hello over an in-memory wire.
type sides struct {
	dialErr, listenErr error
	dialled, heard     *exchange
}

// wire lets a test see and change every byte of a hello: each function gets the record as sent and returns what
// arrives; nil is the identity.
type wire struct{ toListener, toDialer func([]byte) []byte }

func shake(w wire, dialSecret, listenSecret []byte, h hello, known hello) sides {
	d, dFar := net.Pipe()
	lFar, l := net.Pipe()
	pump := func(dst, src net.Conn, change func([]byte) []byte, sizes ...int) {
		for _, n := range sizes {
			b := make([]byte, n)
			if _, err := io.ReadFull(src, b); err != nil {
				dst.Close()
				return
			}
			if change != nil {
				b = change(b)
			}
			if _, err := dst.Write(b); err != nil {
				src.Close()
				return
			}
		}
	}
	done := make(chan struct{}, 2)
	go func() { pump(lFar, dFar, w.toListener, helloSize, proofSize); done <- struct{}{} }()
	go func() { pump(dFar, lFar, w.toDialer, challengeSize, replySize); done <- struct{}{} }()
	var s sides
	each(2, func(side int) {
		if side == 0 {
			s.dialled, _, s.dialErr = dialHello(d, dialSecret, h, func() {})
			d.Close()
			return
		}
		_, s.heard, s.listenErr = listenHello(l, listenSecret, reply{version: wireVersion, session: known.session}, func(claimed hello) []byte {
			known.role, known.rank, known.lane, known.channel = claimed.role, claimed.rank, claimed.lane, claimed.channel
			return known.binding()
		})
		l.Close()
	})
	for range 2 {
		<-done
	}
	return s
}

func controlHello() hello { return hello{version: wireVersion, role: roleControl, rank: 3} }

func dataHello() hello {
	return hello{version: wireVersion, role: roleData, rank: 3, peer: 1, lane: 2, channel: [16]byte{'h'}, session: [16]byte{7}, group: [32]byte{9}}
}

func TestBothSidesOfAHelloGetTheSameKeys(t *testing.T) {
	for _, h := range []hello{controlHello(), dataHello()} {
		for _, secret := range [][]byte{testSecret, nil} {
			s := shake(wire{}, secret, secret, h, h)
			require.NoError(t, s.dialErr)
			require.NoError(t, s.listenErr)
			d1, l1, err := s.dialled.frames(h.session)
			require.NoError(t, err)
			d2, l2, err := s.heard.frames(h.session)
			require.NoError(t, err)
			frame := d1.append(nil, frameBeat, []byte("x"))
			_, _, n, err := d2.open(frame)
			assert.NoError(t, err)
			assert.Equal(t, len(frame), n)
			_, _, _, err = l2.open(l1.append(nil, frameBeat, nil))
			assert.NoError(t, err)
		}
	}
}

func TestFramesKeyedForOneSessionDoNotOpenUnderAnother(t *testing.T) {
	s := shake(wire{}, testSecret, testSecret, controlHello(), controlHello())
	require.NoError(t, errors.Join(s.dialErr, s.listenErr))
	d1, l1, err := s.dialled.frames([sessionSize]byte{1})
	require.NoError(t, err)
	d2, l2, err := s.heard.frames([sessionSize]byte{2})
	require.NoError(t, err)
	_, _, _, err = d2.open(d1.append(nil, frameBeat, nil))
	assert.ErrorIs(t, err, errFrame, "the dialer's")
	_, _, _, err = l1.open(l2.append(nil, frameBeat, nil))
	assert.ErrorIs(t, err, errFrame, "the listener's")
}

func TestAWrongSecretIsRefusedByOneFixedRecord(t *testing.T) {
	var answers [][]byte
	see := wire{toDialer: func(b []byte) []byte {
		if len(b) == replySize {
			answers = append(answers, b)
		}
		return b
	}}
	for _, secrets := range [][2][]byte{{testSecret, []byte("another secret of 32 bytes here!")}, {nil, testSecret}, {testSecret, nil}} {
		s := shake(see, secrets[0], secrets[1], controlHello(), controlHello())
		assert.ErrorIs(t, s.dialErr, errRefused)
		assert.ErrorIs(t, s.listenErr, errProof)
	}
	require.Len(t, answers, 3)
	for _, a := range answers {
		assert.Equal(t, refusal(), a, "the refusal says nothing of the secret, the nonces or the dialer")
	}
}

func TestAListenerWithoutTheSecretIsFoundOut(t *testing.T) {
	// It accepts any proof, and answers with all that it can make up.
	for name, mac := range map[string]func(x *exchange, proof []byte) []byte{
		"zeros":                  func(*exchange, []byte) []byte { return make([]byte, 32) },
		"the proof, reflected":   func(_ *exchange, proof []byte) []byte { return proof },
		"its own secret":         func(x *exchange, _ []byte) []byte { m, _ := x.mac(fromListener); return m },
		"its own, as a dialer's": func(x *exchange, _ []byte) []byte { m, _ := x.mac(fromDialer); return m },
	} {
		t.Run(name, func(t *testing.T) {
			d, l := net.Pipe()
			defer d.Close()
			go func() {
				defer l.Close()
				first := make([]byte, helloSize)
				_, _ = io.ReadFull(l, first)
				h, _ := decodeHello(first)
				challenge := encodeChallenge([32]byte{1})
				_, _ = l.Write(challenge)
				proof := make([]byte, proofSize)
				_, _ = io.ReadFull(l, proof)
				x, _ := newExchange([]byte("not the secret that is the group's"), &h, nil, first, challenge)
				x.say(proof)
				answer := (&reply{version: wireVersion}).encode()
				x.say(answer)
				_, _ = l.Write(append(answer, mac(x, proof)...))
			}()
			_, _, err := dialHello(d, testSecret, controlHello(), func() {})
			assert.ErrorIs(t, err, errProof)
		})
	}
}

// A reflection of the proof under the right secret: only the keys' direction and the transcript stand against it.
func TestAProofNeverVerifiesInTheOtherDirection(t *testing.T) {
	h := controlHello()
	x, err := newExchange(testSecret, &h, nil, h.encode(), encodeChallenge([32]byte{1}))
	require.NoError(t, err)
	d, err := x.mac(fromDialer)
	require.NoError(t, err)
	l, err := x.mac(fromListener)
	require.NoError(t, err)
	assert.NotEqual(t, d, l)
	data := h
	data.role = roleData
	y, err := newExchange(testSecret, &data, nil, h.encode(), encodeChallenge([32]byte{1}))
	require.NoError(t, err)
	other, err := y.mac(fromDialer)
	require.NoError(t, err)
	assert.NotEqual(t, d, other, "a control proof is no data proof")
}

func TestTheListenersOwnBytesEchoedAreAStranger(t *testing.T) {
	d, l := net.Pipe()
	defer d.Close()
	go func() {
		defer l.Close()
		_, _ = io.CopyN(l, l, helloSize)
	}()
	_, _, err := dialHello(d, testSecret, controlHello(), func() {})
	assert.ErrorIs(t, err, errStranger)
}

func TestNoByteOfAHelloCanBeChanged(t *testing.T) {
	for name, h := range map[string]hello{"control": controlHello(), "data": dataHello()} {
		t.Run(name, func(t *testing.T) {
			flip := func(size, at int, bit byte) func([]byte) []byte {
				return func(b []byte) []byte {
					if len(b) == size {
						b[at] ^= bit
					}
					return b
				}
			}
			check := func(w wire, what string, at int) {
				s := shake(w, testSecret, testSecret, h, h)
				assert.Error(t, errors.Join(s.dialErr, s.listenErr), "%s byte %d", what, at)
				assert.Error(t, s.dialErr, "%s byte %d: the dialer is never deceived", what, at)
			}
			for at := range helloSize {
				check(wire{toListener: flip(helloSize, at, 1)}, "hello", at)
			}
			for at := range proofSize {
				check(wire{toListener: flip(proofSize, at, 0x80)}, "proof", at)
			}
			for at := range challengeSize {
				check(wire{toDialer: flip(challengeSize, at, 1)}, "challenge", at)
			}
			for at := range replySize {
				check(wire{toDialer: flip(replySize, at, 1)}, "reply", at)
			}
		})
	}
}

func TestADowngradedVersionIsNoticed(t *testing.T) {
	h := controlHello()
	h.version = 2
	s := shake(wire{toListener: func(b []byte) []byte {
		if len(b) == helloSize {
			b[8] = 1
		}
		return b
	}}, testSecret, testSecret, h, h)
	assert.ErrorIs(t, s.listenErr, errProof)
	assert.ErrorIs(t, s.dialErr, errRefused)
}

func TestARecordedHelloCannotBeReplayed(t *testing.T) {
	h := dataHello()
	var said, heard [][]byte
	record := wire{
		toListener: func(b []byte) []byte { said = append(said, bytes.Clone(b)); return b },
		toDialer:   func(b []byte) []byte { heard = append(heard, bytes.Clone(b)); return b },
	}
	s := shake(record, testSecret, testSecret, h, h)
	require.NoError(t, errors.Join(s.dialErr, s.listenErr))

	replay := func(i *int, recorded [][]byte) func([]byte) []byte {
		return func([]byte) []byte { *i++; return recorded[*i-1] }
	}
	var i int
	s = shake(wire{toListener: replay(&i, said)}, testSecret, testSecret, h, h)
	assert.ErrorIs(t, s.listenErr, errProof, "a recorded dialer")
	i = 0
	s = shake(wire{toDialer: replay(&i, heard)}, testSecret, testSecret, h, h)
	assert.ErrorIs(t, s.dialErr, errProof, "a recorded listener")
}

func TestADataHelloIsBoundToItsSessionGroupAndRanks(t *testing.T) {
	known := dataHello()
	for name, change := range map[string]func(h *hello){
		"session": func(h *hello) { h.session[15] ^= 1 },
		"group":   func(h *hello) { h.group[0] ^= 1 },
		"peer":    func(h *hello) { h.peer++ },
	} {
		h := dataHello()
		change(&h)
		s := shake(wire{}, testSecret, testSecret, h, known)
		assert.ErrorIs(t, s.listenErr, errProof, name)
		assert.ErrorIs(t, s.dialErr, errRefused, name)
	}
}

func TestTheListenerSaysOnlyTheChallengeToTheUnproven(t *testing.T) {
	var said []byte
	see := wire{
		toListener: func(b []byte) []byte {
			if len(b) == proofSize {
				return make([]byte, proofSize)
			}
			return b
		},
		toDialer: func(b []byte) []byte { said = append(said, b...); return b },
	}
	shake(see, testSecret, testSecret, controlHello(), controlHello())
	require.Len(t, said, challengeSize+replySize)
	assert.Equal(t, listenerMagic, string(said[:8]))
	assert.Equal(t, refusal(), said[challengeSize:])
}

func TestHelloRecordsKeepTheirPlaces(t *testing.T) {
	h := dataHello()
	h.nonce, h.rail, h.generation = [32]byte{5}, 6, 4
	b := h.encode()
	require.Len(t, b, helloSize)
	assert.Equal(t, "hipfabr>\x02\x00\x02\x06\x03\x00\x01\x00\x02\x00\x04\x00h", string(b[:21]))
	assert.Equal(t, []byte{5, 7, 9}, []byte{b[36], b[68], b[84]}, "nonce, session, group")
	got, err := decodeHello(b)
	require.NoError(t, err)
	assert.Equal(t, h, got)
	r := reply{version: 0x102, session: [16]byte{3}}
	assert.Equal(t, "hipfabr<\x01\x00\x02\x01\x00\x00\x00\x00\x03", string(r.encode()[:17]))
	back, err := decodeReply(append(r.encode(), make([]byte, 32)...))
	require.NoError(t, err)
	assert.Equal(t, r, back)
}

func TestADialerKnowsAnotherProgramByItsFirstWords(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go func() {
		_, _ = io.ReadFull(far, make([]byte, helloSize))
		_, _ = io.WriteString(far, "SSH-2.0-OpenSSH_9.2\r\n") // and waits
	}()
	require.NoError(t, near.SetDeadline(time.Now().Add(10*time.Second)))
	_, _, err := dialHello(near, []byte("0123456789abcdef"), dataHello(), func() {})
	assert.ErrorIs(t, err, errStranger)
	assert.ErrorContains(t, err, "SSH-2.0-")
}
