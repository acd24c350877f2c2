package bootstrap

import (
	"bytes"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// replayed reads what it was given and drops what is written to it.
type replayed struct {
	io.Reader
	said []byte
}

func (r *replayed) Write(b []byte) (int, error) {
	r.said = append(r.said, b...)
	return len(b), nil
}

// FuzzHello gives a listener any bytes: nothing but the challenge and the refusal may ever come back.
func FuzzHello(f *testing.F) {
	for _, h := range []hello{controlHello(), dataHello()} {
		f.Add(h.encode())
		f.Add(append(h.encode(), make([]byte, proofSize)...))
		f.Add(h.encode()[:40])
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))
	f.Add(refusal())
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &replayed{Reader: bytes.NewReader(b)}
		h, _, err := listenHello(c, testSecret, reply{version: wireVersion, session: [16]byte{1}}, func(h hello) []byte { return h.binding() })
		if err == nil {
			t.Fatalf("a proof without the secret: %x", b)
		}
		if len(c.said) > challengeSize && !bytes.Equal(c.said[challengeSize:], refusal()) {
			t.Fatalf("it was told %x", c.said)
		}
		if len(b) >= helloSize {
			if again, err := decodeHello(h.encode()); err == nil && again != h {
				t.Fatalf("%+v became %+v", h, again)
			}
		}
	})
}

// FuzzHelloReply gives a dialer any bytes.
func FuzzHelloReply(f *testing.F) {
	accept := (&reply{version: wireVersion}).encode()
	f.Add(append(encodeChallenge([32]byte{1}), append(accept, make([]byte, 32)...)...))
	f.Add(append(encodeChallenge([32]byte{1}), refusal()...))
	f.Add(encodeChallenge([32]byte{1}))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := dialHello(&replayed{Reader: bytes.NewReader(b)}, testSecret, controlHello(), func() {}); err == nil {
			t.Fatalf("a proof without the secret: %x", b)
		}
	})
}

// FuzzControlFrame reads any bytes as a stream of frames, sealed and not.
func FuzzControlFrame(f *testing.F) {
	key := make([]byte, 32)
	s := newSeal(key, fromDialer)
	f.Add(newSeal(key, fromDialer).append(nil, framePath, make([]byte, 8)))
	f.Add(s.append(s.append(nil, frameBeat, encodeProgress(fabric.Progress{})), frameGoodbye, nil))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, byte(frameMessage), 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newSeal(key, fromDialer)
		for rest := b; ; {
			_, payload, n, err := in.open(rest)
			if err != nil || n == 0 {
				break
			}
			if n != frameHeader+len(payload)+frameMAC || n > len(rest) {
				t.Fatalf("a frame of %d bytes, a payload of %d, %d left", n, len(payload), len(rest))
			}
			rest = rest[n:]
		}
		p, taken := &path{in: newSeal(key, fromDialer)}, uint64(1000)
		if rest, err := p.begin(b, taken); err == nil && p.in == nil && (p.at > taken || len(rest)+pathFrame != len(b)) {
			t.Fatalf("a path begins at %d of %d with %d bytes of %d", p.at, taken, len(rest), len(b))
		}
	})
}

// FuzzControlMessage acts on any frame as rank 0 and as another rank, on a loop whose connections are closed.
func FuzzControlMessage(f *testing.F) {
	add := func(t frameType, b []byte) { f.Add(byte(t), b) }
	add(frameBeat, encodeProgress(fabric.Progress{Peer: -1, Waiting: 3}))
	add(frameReport, encodeCause(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: 1, From: 2, Text: "x"}))
	add(frameReport, encodeCause(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 1000, From: 2}))
	add(frameVerdict, encodeCause(&fabric.Cause{Kind: fabric.ErrDesync, Peer: -1, From: 0}))
	add(frameRecords, append(encodeProgress(fabric.Progress{}), encodeRecords([]fabric.Record{{Seq: 1, Begun: time.Unix(1, 0)}})...))
	add(frameGoodbye, nil)
	add(frameLeft, []byte{2, 0})
	add(frameGather, (&contribution{step: 1, label: "all-gather", blob: []byte("x")}).encode())
	add(frameGathered, []byte{1, 0, 0, 0, 0, 0, 'x'})
	add(frameMessage, []byte{2, 0, 'x'})
	add(frameMessage, []byte{0xff, 0xff, 'x'})
	add(frameCredit, []byte{1, 0, 9, 0, 0, 0})
	add(frameEnter, []byte{1, 0, 0, 0})
	add(frameRelease, []byte{1, 0, 0, 0})
	add(frameTaken, []byte{9, 0, 0, 0, 0, 0, 0, 0})
	add(framePath, make([]byte, 8))
	add(frameJoin, (&joining{world: 3, group: "x", settings: []Setting{{"a", "b"}}}).encode())
	add(frameStart, encodePlaces([]place{{host: "x", from: netip.MustParseAddr("10.0.0.1"), listen: []address{{at: netip.MustParseAddrPort("127.0.0.1:1"), bits: 8, device: "lo", chosen: true}}}}))
	add(frameSubGather, (&subBlob{key: "k", set: 6, step: 1, rank: 1, blob: []byte("x")}).encode())
	add(frameSubGather, (&subBlob{key: "k", set: 3, step: 1, rank: 1}).encode())
	add(frameSubGathered, (&subBlob{key: "k", set: 3, step: 1, rank: 1, blob: []byte("x")}).encode())
	add(frameSubGathered, (&subBlob{key: "k", set: 3, step: 0, rank: 1}).encode()) // before the first exchange
	report := subCause{"k", 3, &fabric.Cause{Kind: fabric.ErrTimeout, Peer: 1, From: 1, Text: "x", Group: "g"}}
	add(frameSubReport, report.encode())
	add(frameSubVerdict, report.encode())
	add(frameSubLeft, []byte{1, 0, 'k'})
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		_, _ = decodeJoining(b)
		_, _ = decodePlaces(b)
		for rank := range 2 {
			c := Config{Rank: rank, World: 3, Master: "127.0.0.1:1"}
			s := newSession(c.withDefaults())
			s.places = make([]place, 3)
			var links []*link
			for peer := range 3 {
				if peer != rank && (rank == 0 || peer == 0) {
					links = append(links, &link{peer: peer})
				}
			}
			s.loop = newLoop(s, newSolo(), links)
			_, err := s.Sub(SubConfig{Name: "g", Key: "k", Members: []int{1, 0}, Isolated: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range links {
				_ = s.loop.handle(k, frameType(kind), b)
				_ = s.loop.handle(k, frameType(kind), b)
			}
			s.loop.decide()
			s.loop.decideSubs()
			s.loop.announceSubs()
			s.loop.announce()
			s.end()
			s.wg.Wait()
		}
	})
}
